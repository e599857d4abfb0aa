// node peer.mjs publish|subscribe CONFIGURATION: a libp2p node that publishes, or subscribes, by GossipSub.
//
// A publisher dials all subscribers, a subscriber those before it by name; it redials whenever one is not connected.
// It is a client over cutset_client.stdio; its standard error goes to its host's log.

import "./older_node.mjs";

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { gossipsub } from "@libp2p/gossipsub";
import { identify } from "@libp2p/identify";
import { ping } from "@libp2p/ping";
import { plaintext } from "@libp2p/plaintext";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { multiaddr } from "@multiformats/multiaddr";
import { createLibp2p } from "libp2p";

const TOPIC = "events";
const AGAIN_MS = 500; // between attempts to dial
const ALL_THERE_MS = 10_000; // after this time a peer is satisfied with the peers that it can reach

const [what, file] = process.argv.slice(2);
const its = JSON.parse(readFileSync(file));
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const log = (...words) => console.error(...words);

const lines = createInterface({ input: process.stdin });
const node = await createLibp2p({
  addresses: { listen: [`/ip4/${its.address}/tcp/${its.port}`] },
  transports: [tcp()],
  connectionEncrypters: [plaintext()],
  streamMuxers: [yamux()],
  connectionMonitor: { pingInterval: its.ping_interval_ms },
  services: { identify: identify(), ping: ping(), pubsub: gossipsub(its.gossipsub) },
});
const network = node.services.pubsub;
const addressOf = (peer) => node.getConnections(peer)[0]?.remoteAddr.toString().split("/")[2] ?? "gone";

node.addEventListener("connection:open", ({ detail }) => log("connected:", detail.remoteAddr.toString()));
node.addEventListener("connection:close", ({ detail }) => log("closed:", detail.remoteAddr.toString()));
node.addEventListener("peer:disconnect", () => log("peers:", node.getPeers().length));
for (const change of ["graft", "prune"]) {
  network.addEventListener(`gossipsub:${change}`, ({ detail }) => log(`${change}:`, addressOf(detail.peerId)));
}

async function keepDialled(address) {
  const at = `/ip4/${address}/tcp/${its.port}`;
  while (true) {
    if (!node.getConnections().some((each) => each.remoteAddr.toString().startsWith(`${at}/`))) {
      await node.dial(multiaddr(at)).catch((error) => log("not connected:", address, error.name));
    }
    await sleep(AGAIN_MS);
  }
}

// A subscriber is ready when its mesh has enough peers, a publisher when it knows enough subscribers.
function isThere(atLeast) {
  const known = network.getSubscribers(TOPIC).length;
  const wanted = Math.min(its.gossipsub.Dlo, atLeast);
  return known >= atLeast && (what === "publish" || network.getMeshPeers(TOPIC).length >= wanted);
}

async function becomeReady() {
  const patience = Date.now() + ALL_THERE_MS;
  while (!isThere(Date.now() < patience ? its.subscribers : Math.min(1, its.subscribers))) await sleep(50);
  say({ did: "ready" });
}

if (what === "subscribe") {
  network.addEventListener("message", ({ detail }) => {
    say({ did: "got", payload: Buffer.from(detail.data).toString("base64") });
  });
  network.subscribe(TOPIC);
}
its.dials.forEach(keepDialled);
becomeReady();

// One after another: events are signed on several threads, and would overtake each other.
for await (const line of lines) {
  const told = JSON.parse(line);
  if (told.do === "finish") process.exit(0);
  if (told.do !== "publish") continue;
  say({ did: "sent", id: told.id });
  await network.publish(TOPIC, Buffer.from(told.payload, "base64")).catch((error) => log("not published:", error.message));
}
process.exit(0); // the standard input has ended
