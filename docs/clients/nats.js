// node nats.js publish|subscribe ADDRESS PORT: a client of NATS over cutset_client.stdio, without any package.

const net = require("net");
const readline = require("readline");

const [what, address, port] = process.argv.slice(2);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const wanted = new Map(); // the number of the subscription to each subject
let lastNumber = 0;
let isTold = what === "publish"; // a subscriber must receive its subscriptions first
let server, unread, awaited; // awaited: callbacks for the server's next answers to a PING

function connect() {
  unread = Buffer.alloc(0);
  server = net.connect(Number(port), address);
  server.setNoDelay(true);
  awaited = [];
  server.write('CONNECT {"verbose": false}\r\n');
  subscribe([...wanted.keys()]);
  server.on("data", (data) => {
    unread = Buffer.concat([unread, data]);
    while (read());
  });
  server.on("error", () => {}); // "close" follows
  server.on("close", () => setTimeout(connect, 200));
}

// Send commands and then a PING. The server's answer to the PING confirms that it has read the commands.
function ask(lines, saying) {
  if (server.readyState === "closed") return; // the next connection subscribes again
  server.write([...lines, "PING"].map((line) => line + "\r\n").join(""));
  awaited.push(isTold ? [{ did: "ready" }, saying] : [saying]);
}

function subscribe(subjects) {
  for (const subject of subjects) if (!wanted.has(subject)) wanted.set(subject, ++lastNumber);
  ask(subjects.map((subject) => `SUB ${subject} ${wanted.get(subject)}`), { did: "subscribed", topics: subjects });
}

function unsubscribe(subjects) {
  ask(subjects.map((subject) => `UNSUB ${wanted.get(subject)}`), { did: "unsubscribed", topics: subjects });
  for (const subject of subjects) wanted.delete(subject);
}

// Process one line of the server, with the payload that follows a MSG; return false if it is incomplete.
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
  if (words[0] === "PONG") awaited.shift().forEach(say);
  unread = unread.subarray(next);
  return true;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const told = JSON.parse(line);
  if (told.do === "finish") process.exit(0);
  if (told.do === "unsubscribe") unsubscribe(told.topics);
  if (told.do === "subscribe") {
    isTold = true;
    subscribe(told.topics ?? [">"]);
  }
  if (told.do !== "publish") return;
  if (server.readyState !== "open") return say({ did: "refused", id: told.id });
  const payload = Buffer.from(told.payload, "base64");
  say({ did: "sent", id: told.id });
  server.write(Buffer.concat([Buffer.from(`PUB ${told.topic} ${payload.length}\r\n`), payload, Buffer.from("\r\n")]));
});

connect();
