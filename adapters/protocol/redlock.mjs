// A client for node-redlock and the libraries that were derived from it, over ioredis: redlockClient(library, kind).
import { connect, Failed, mono, sleep } from './protocol.mjs'

const retryDelay = 200 // of the libraries, on average

// mono_ns is read first: a pause between the two clocks then shortens the validity, and never extends it.
const promise = (lock) => ({ mono_ns: mono(), valid_ms: lock.expiration - Date.now() })

export function redlockClient ({ Redlock, ResourceLockedError, ExecutionError }, kind) {
  const oneTry = kind === 'redlock-one-try'
  let redlock

  // refused says whether every server that was asked in the last attempt replied that the key is another's: then the
  // library has no lock and none of its requests is still on its way.
  async function refused (err) {
    if (!(err instanceof ExecutionError)) return err instanceof ResourceLockedError
    const last = await err.attempts[err.attempts.length - 1]
    return last !== undefined && [...last.votesAgainst.values()].every(e => e instanceof ResourceLockedError)
  }

  return {
    can: ['try', 'renew', 'scripts'],

    async init (endpoints) {
      redlock = new Redlock(connect(endpoints))
    },

    async acquire (request, wait) {
      const lease = Math.round(request.lease_ms || 10000)
      const deadline = Date.now() + wait
      const retryCount = oneTry ? 0 : Math.round(wait / retryDelay)
      for (;;) {
        try {
          const lock = await redlock.acquire([request.key], lease, { retryCount })
          return [lock, promise(lock)]
        } catch (err) {
          if (!await refused(err)) throw err
          if (!oneTry || Date.now() >= deadline) throw new Failed('held', String(err))
        }
        await sleep(30 + Math.random() * 40)
      }
    },

    async renew (lock, lease) {
      try {
        const renewed = await lock.extend(Math.round(lease))
        return [renewed, promise(renewed)]
      } catch (err) {
        if (!await refused(err)) throw err
        throw new Failed('not-held', String(err))
      }
    },

    async release (lock) {
      try {
        await lock.release()
      } catch (err) {
        if (!await refused(err)) throw err
        throw new Failed('not-held', String(err))
      }
    }
  }
}
