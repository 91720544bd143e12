// redlock-universal over ioredis: client.mjs lock | redlock.
import { createLock, createRedlock, IoredisAdapter } from 'redlock-universal'
import { connect, Failed, serve } from './protocol.mjs'

const retryDelay = 100
let unanswered = 0 // requests of the present operation to which a server gave no reply

// Noting counts them: the library's errors do not say whether a server may have executed what it did not reply to.
class Noting extends IoredisAdapter {
  async setNX (...args) {
    return noting(() => super.setNX(...args))
  }

  async delIfMatch (...args) {
    return noting(() => super.delIfMatch(...args))
  }

  async extendIfMatch (...args) {
    return noting(() => super.extendIfMatch(...args))
  }
}

async function noting (request) {
  try {
    return await request()
  } catch (err) {
    unanswered++
    throw err
  }
}

// certain performs an operation; refused: the library says no, by a result or an error.
async function certain (code, operation) {
  unanswered = 0
  try {
    const result = await operation()
    if (result !== false) return result
  } catch (err) {
    if (unanswered > 0) throw err
    throw new Failed(code, String(err))
  }
  if (unanswered > 0) throw new Error('the library returned false, and a server did not reply')
  throw new Failed(code, 'the library returned false')
}

let adapters
serve({
  can: ['try', 'renew', 'scripts'],

  async init (endpoints) {
    adapters = connect(endpoints).map(c => new Noting(c))
  },

  async acquire (request, wait) {
    const settings = { key: request.key, ttl: Math.round(request.lease_ms || 30000), retryDelay, retryAttempts: Math.round(wait / retryDelay) }
    const lock = process.argv[2] === 'redlock' ? createRedlock({ ...settings, adapters }) : createLock({ ...settings, adapter: adapters[0] })
    const handle = await certain('held', () => lock.acquire())
    return [{ lock, handle }, {}]
  },

  async renew (held, lease) {
    await certain('not-held', () => held.lock.extend(held.handle, Math.round(lease)))
    return [held, {}]
  },

  async release ({ lock, handle }) {
    await certain('not-held', () => lock.release(handle))
  }
})
