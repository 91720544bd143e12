// A lock client for lockchaos that needs only Node's own modules.
//
// The lock is that of the Redis documentation for one master: SET key owner NX PX
// lease, released by compare-and-delete, with a fencing token from a counter. A
// watchdog renews a lock without a lease and reports renewals and losses.
// Protocol: docs/reference/protocol.md. Run it with
//
//     chaos run --scenario gc-pause --lock "exec:node examples/client.mjs" ...
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

// One script for lock and token: no other grant can come between.
const ACQUIRE = `if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('incr', KEYS[1] .. ':token') end return 0`;
const RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
let ownLease = 3000; // ms, of a request without lease_ms; option lease_ms of the scenario

const mono = () => process.hrtime.bigint(); // CLOCK_MONOTONIC, in nanoseconds
const since = (start, now = mono()) => Number(now - start) / 1e6;
// mono_ns is a 64-bit integer, which a double would round, so it is inserted as text.
const send = (reply, at) => process.stdout.write(
  JSON.stringify(reply).replace(/}$/, at ? `,"mono_ns":${at}}` : '}') + '\n');

class Redis {
  constructor(endpoints) {
    const [, host, port] = endpoints.addrs[0].match(/^(.*):(\d+)$/);
    this.where = { host, port: Number(port), localAddress: endpoints.source }; // faults identify us by localAddress
    this.password = endpoints.password; // of every server of the run
    this.waiting = [];
  }

  connect() {
    this.text = '';
    this.conn = createConnection(this.where).setNoDelay(true);
    this.conn.on('data', (bytes) => this.read(bytes));
    this.conn.on('error', (e) => this.drop(e));
    this.conn.on('close', () => this.drop(new Error('connection closed by the server')));
    this.conn.setTimeout(2000, () => this.waiting.length && this.drop(new Error('no reply')));
    if (this.password) this.call('AUTH', this.password).catch(() => {}); // without it the next command fails
  }

  // drop closes the connection; requests sent on it have an unknown outcome.
  drop(error) {
    const { conn, waiting } = this;
    this.conn = null;
    this.waiting = [];
    conn?.removeAllListeners().on('error', () => {}).destroy();
    for (const w of waiting) w.reject(error);
  }

  read(bytes) { // every script returns one number or one error, AUTH returns +OK
    this.text += bytes;
    for (let end; (end = this.text.indexOf('\r\n')) >= 0; this.text = this.text.slice(end + 2)) {
      const line = this.text.slice(0, end);
      const { resolve, reject } = this.waiting.shift();
      line[0] === '-' ? reject(new Error(line)) : resolve(Number(line.slice(1)));
      if (line.startsWith('-READONLY')) return this.drop(new Error(line)); // a replica now: the address leads elsewhere
    }
  }

  run(script, ...words) {
    if (!this.conn) this.connect();
    return this.call('EVAL', script, '1', ...words);
  }

  call(...words) {
    const all = words.map(String);
    this.conn.write(`*${all.length}\r\n` + all.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join(''));
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }
}

let redis;
const watchdogs = new Map(); // by owner

// watch renews a hold three times per lease until it is released or lost.
function watch(key, owner) {
  watchdogs.set(owner, setInterval(async () => {
    const start = mono();
    const kept = await redis.run(RENEW, key, owner, ownLease).catch(() => -1); // -1: unknown; retry
    if (!watchdogs.has(owner) || kept < 0) return;
    const now = mono(), validity = ownLease - since(start, now);
    if (kept > 0 && validity <= 0) return; // the reply came too late: the next renewal decides
    if (kept > 0) return send({ event: 'renewed', key, owner, valid_ms: validity }, now);
    forget(owner);
    send({ event: 'lost', key, owner });
  }, ownLease / 3));
}

function forget(owner) {
  clearInterval(watchdogs.get(owner));
  watchdogs.delete(owner);
}

async function acquire({ op, key, owner, lease_ms = 0, wait_ms = 0 }) {
  const lease = Math.trunc(lease_ms) || ownLease;
  for (const first = mono(); ; await sleep(10)) {
    const start = mono(); // before the server starts the lease
    const token = await redis.run(ACQUIRE, key, owner, lease);
    if (token > 0) {
      if (!lease_ms) watch(key, owner);
      const now = mono(); // read once: valid_ms counts from mono_ns, even if this process is paused between the two
      return [{ type: 'ok', token, count: 1, valid_ms: lease - since(start, now) }, now];
    }
    if (op === 'try' || since(first) >= wait_ms) return [{ type: 'fail', code: 'held', error: 'held by another owner' }];
  }
}

const notHeld = [{ type: 'fail', code: 'not-held', error: 'not held by this owner' }];
const operations = {
  init: ({ setup }) => {
    redis = new Redis(setup.endpoints);
    ownLease = Number(setup.options?.lease_ms ?? ownLease);
    return [{ type: 'ok' }];
  },
  acquire, try: acquire,
  work: async ({ ms = 0 }) => { await sleep(ms); return [{ type: 'ok' }]; }, // the critical section, in this process
  renew: async ({ key, owner, lease_ms = 0 }) => {
    const lease = Math.trunc(lease_ms) || ownLease, start = mono();
    if (await redis.run(RENEW, key, owner, lease) === 0) return notHeld;
    const now = mono();
    return [{ type: 'ok', valid_ms: lease - since(start, now) }, now];
  },
  release: async ({ key, owner }) => {
    forget(owner);
    return await redis.run(RELEASE, key, owner) === 0 ? notHeld : [{ type: 'ok' }];
  },
  close: () => [{ type: 'ok' }],
};

async function handle(request) {
  if (request.mode) return [{ type: 'fail', code: 'unknown-op', error: 'this lock has no modes' }];
  if (!Object.hasOwn(operations, request.op)) return [{ type: 'fail', code: 'unknown-op', error: `unknown op ${request.op}` }];
  try {
    return await operations[request.op](request);
  } catch (e) { // refused: nothing was sent; otherwise the effect is unknown
    return [{ type: e.code === 'ECONNREFUSED' ? 'fail' : 'info', code: e.code ?? 'unknown', error: e.message }];
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const [reply, at] = await handle(request); // one at a time: the next line is read after this reply
  send({ id: request.id, ...reply }, at);
  if (request.op === 'close') break;
}
process.exit(0);
