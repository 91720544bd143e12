// A lock client for lockchaos, with nothing but Node's own modules.
//
// The lock is the plain one of the Redis documentation, on one master: SET key
// owner NX PX lease, given back by compare-and-delete, with a fencing token from
// a counter beside it. A lock without a lease is renewed by this program
// itself, which tells the harness of each renewal and of a loss. Protocol:
// docs/protocol.md. Run it with
//
//     chaos run --scenario gc-pause --lock "exec:node examples/client.mjs" ...
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

// The token is taken in the same script as the lock: no other grant can come between.
const ACQUIRE = `if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('incr', KEYS[1] .. ':token') end return 0`;
const RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
let ownLease = 3000; // ms, when the harness asks for none; option lease_ms of the scenario

const mono = () => process.hrtime.bigint(); // CLOCK_MONOTONIC, in nanoseconds
const since = (began) => Number(mono() - began) / 1e6;
// mono_ns is a 64-bit number, and a double would round it; so it is put into the text by hand.
const say = (reply, at) => process.stdout.write(
  JSON.stringify(reply).replace(/}$/, at ? `,"mono_ns":${at}}` : '}') + '\n');

class Redis {
  constructor(endpoints) {
    const [, host, port] = endpoints.addrs[0].match(/^(.*):(\d+)$/);
    this.where = { host, port: Number(port), localAddress: endpoints.source }; // the harness knows us by our address
    this.waiting = [];
  }

  connect() {
    this.text = '';
    this.conn = createConnection(this.where).setNoDelay(true);
    this.conn.on('data', (bytes) => this.read(bytes));
    this.conn.on('error', (e) => this.drop(e));
    this.conn.on('close', () => this.drop(new Error('the server has hung up')));
    this.conn.setTimeout(2000, () => this.waiting.length && this.drop(new Error('no answer')));
  }

  // drop gives up the connection; whatever was sent on it is of unknown outcome.
  drop(error) {
    const { conn, waiting } = this;
    this.conn = null;
    this.waiting = [];
    conn?.removeAllListeners().on('error', () => {}).destroy();
    for (const w of waiting) w.reject(error);
  }

  read(bytes) { // all our scripts answer with one number or one error
    this.text += bytes;
    for (let end; (end = this.text.indexOf('\r\n')) >= 0; this.text = this.text.slice(end + 2)) {
      const line = this.text.slice(0, end);
      const { resolve, reject } = this.waiting.shift();
      line[0] === ':' ? resolve(Number(line.slice(1))) : reject(new Error(line));
    }
  }

  run(script, ...words) {
    if (!this.conn) this.connect();
    const all = ['EVAL', script, '1', ...words].map(String);
    this.conn.write(`*${all.length}\r\n` + all.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join(''));
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }
}

let redis;
const watchdogs = new Map(); // by owner

// watch renews a hold three times a lease until it is given back or lost.
function watch(key, owner) {
  watchdogs.set(owner, setInterval(async () => {
    const began = mono();
    const kept = await redis.run(RENEW, key, owner, ownLease).catch(() => -1); // -1: nobody knows; try again
    if (!watchdogs.has(owner) || kept < 0) return;
    if (kept > 0) return say({ event: 'renewed', key, owner, valid_ms: ownLease - since(began) }, mono());
    forget(owner);
    say({ event: 'lost', key, owner });
  }, ownLease / 3));
}

function forget(owner) {
  clearInterval(watchdogs.get(owner));
  watchdogs.delete(owner);
}

async function acquire({ op, key, owner, lease_ms = 0, wait_ms = 0 }) {
  const lease = Math.trunc(lease_ms) || ownLease;
  for (const asked = mono(); ; await sleep(10)) {
    const began = mono(); // before the server starts to count
    const token = await redis.run(ACQUIRE, key, owner, lease);
    if (token > 0) {
      if (!lease_ms) watch(key, owner);
      return [{ type: 'ok', token, count: 1, valid_ms: lease - since(began) }, mono()];
    }
    if (op === 'try' || since(asked) >= wait_ms) return [{ type: 'fail', code: 'held', error: 'somebody else has it' }];
  }
}

const notOurs = [{ type: 'fail', code: 'not-held', error: 'it is not ours any more' }];
const operations = {
  init: ({ setup }) => {
    redis = new Redis(setup.endpoints);
    ownLease = Number(setup.options?.lease_ms ?? ownLease);
    return [{ type: 'ok' }];
  },
  acquire, try: acquire,
  work: async ({ ms = 0 }) => { await sleep(ms); return [{ type: 'ok' }]; }, // the critical section is spent here
  renew: async ({ key, owner, lease_ms = 0 }) => {
    const lease = Math.trunc(lease_ms) || ownLease, began = mono();
    if (await redis.run(RENEW, key, owner, lease) === 0) return notOurs;
    return [{ type: 'ok', valid_ms: lease - since(began) }, mono()];
  },
  release: async ({ key, owner }) => {
    forget(owner);
    return await redis.run(RELEASE, key, owner) === 0 ? notOurs : [{ type: 'ok' }];
  },
  close: () => [{ type: 'ok' }],
};

async function answer(ask) {
  if (!Object.hasOwn(operations, ask.op)) return [{ type: 'fail', code: 'unknown-op', error: `no such operation: ${ask.op}` }];
  try {
    return await operations[ask.op](ask);
  } catch (e) { // refused: nothing was sent. Anything else was, and has perhaps happened.
    return [{ type: e.code === 'ECONNREFUSED' ? 'fail' : 'info', code: e.code ?? 'unknown', error: e.message }];
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  const [reply, at] = await answer(ask); // one at a time: the next line is read when this one is answered
  say({ id: ask.id, ...reply }, at);
  if (ask.op === 'close') break;
}
process.exit(0);
