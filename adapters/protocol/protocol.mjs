// The client's end of the protocol (docs/reference/protocol.md) for lock libraries in Node: serve(client).
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'
import net from 'node:net'

const require = createRequire(import.meta.url)

const say = (reply) => process.stdout.write(JSON.stringify(reply) + '\n')
export const mono = () => Number(process.hrtime.bigint()) // a double is exact for an uptime of 104 days
export const sleep = (ms) => new Promise(resolve => setTimeout(resolve, ms))

// Failed says that the operation certainly did not happen.
export class Failed extends Error {
  constructor (code, text) {
    super(text)
    this.code = code
  }
}

const split = (address) => {
  const i = address.lastIndexOf(':')
  return { host: address.slice(0, i), port: +address.slice(i + 1) }
}

// connect returns an ioredis client for each server. ioredis does not pass localAddress on; a connector of one's own does.
export function connect (endpoints) {
  const { Redis, AbstractConnector } = require('ioredis')
  class FromSource extends AbstractConnector {
    constructor (options) {
      super(options.disconnectTimeout)
      this.options = options
    }

    connect () {
      this.connecting = true
      return new Promise((resolve, reject) => process.nextTick(() => {
        if (!this.connecting) return reject(new Error('closed'))
        this.stream = net.connect({ host: this.options.host, port: this.options.port, localAddress: endpoints.source })
        resolve(this.stream)
      }))
    }
  }
  return endpoints.addrs.map(address => {
    const client = new Redis({ ...split(address), password: endpoints.password, Connector: FromSource })
    client.on('error', err => console.error(String(err)))
    return client
  })
}

async function perform (client, locks, request) {
  const { op } = request
  const key = JSON.stringify([request.owner, request.key])
  if (request.mode || request.permits || request.keys) {
    throw new Failed('unknown-op', 'mode, permits and keys are not supported')
  }
  if (op === 'acquire' || op === 'try') {
    const [lock, more] = await client.acquire(request, op === 'acquire' ? request.wait_ms || 0 : 0)
    locks.set(key, lock)
    return more
  }
  if (op === 'work') {
    await sleep(request.ms || 0)
    return {}
  }
  if (op !== 'release' && (op !== 'renew' || !client.renew)) throw new Failed('unknown-op', `unknown operation ${op}`)
  const lock = locks.get(key)
  if (!lock) throw new Failed('not-held', 'nothing is held')
  if (op === 'renew') {
    const [renewed, more] = await client.renew(lock, request.lease_ms)
    locks.set(key, renewed)
    return more
  }
  locks.delete(key)
  await client.release(lock)
  return {}
}

// serve serves requests until close or the end of input. client has can, init(endpoints, options),
// acquire(request, wait in ms) → [lock, fields], release(lock), and perhaps renew(lock, lease in ms) → [lock, fields].
// They throw Failed if nothing happened; any other error is an unknown outcome.
export async function serve (client) {
  const locks = new Map()
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    const { id } = request
    if (request.op === 'init') {
      try {
        await client.init(request.setup.endpoints, request.setup.options || {})
        say({ id, type: 'ok', can: client.can })
      } catch (err) {
        say({ id, type: 'fail', code: err.code || 'error', error: String(err) })
      }
      continue
    }
    if (request.op === 'close') {
      say({ id, type: 'ok' })
      break
    }
    perform(client, locks, request).then(
      more => say({ id, type: 'ok', ...more }),
      err => err instanceof Failed
        ? say({ id, type: 'fail', code: err.code, error: err.message })
        : say({ id, type: 'info', code: 'unknown', error: String(err) }))
  }
  process.exit(0)
}
