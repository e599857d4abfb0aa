// node nats.js publish|subscribe ADDRESS PORT: a client of NATS over cutset_client.stdio, without any package.

const net = require("net");
const readline = require("readline");

const [what, address, port] = process.argv.slice(2);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
let server, unread;

function connect() {
  unread = Buffer.alloc(0);
  server = net.connect(Number(port), address);
  server.setNoDelay(true);
  server.write('CONNECT {"verbose": false}\r\n' + (what === "subscribe" ? "SUB > 1\r\n" : "") + "PING\r\n");
  server.on("data", (data) => {
    unread = Buffer.concat([unread, data]);
    while (read());
  });
  server.on("error", () => {}); // "close" follows
  server.on("close", () => setTimeout(connect, 200));
}

// Take one line of the server, with the payload that follows a MSG; false if it is not whole.
function read() {
  const end = unread.indexOf("\r\n");
  if (end < 0) return false;
  const words = unread.toString("latin1", 0, end).split(" ");
  let next = end + 2;
  if (words[0] === "MSG") {
    const from = next;
    next += Number(words[words.length - 1]) + 2;
    if (unread.length < next) return false;
    say({ did: "got", payload: unread.toString("base64", from, next - 2), topic: words[1] });
  }
  if (words[0] === "PING") server.write("PONG\r\n");
  if (words[0] === "PONG") say({ did: "ready" }); // the server has read all that came before our PING
  unread = unread.subarray(next);
  return true;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const told = JSON.parse(line);
  if (told.do === "finish") process.exit(0);
  if (told.do !== "publish") return;
  if (server.readyState !== "open") return say({ did: "refused", id: told.id });
  const payload = Buffer.from(told.payload, "base64");
  say({ did: "sent", id: told.id });
  server.write(Buffer.concat([Buffer.from(`PUB ${told.topic} ${payload.length}\r\n`), payload, Buffer.from("\r\n")]));
});

connect();
