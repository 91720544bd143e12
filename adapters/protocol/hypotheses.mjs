// Tries hypotheses of docs/contributors/hypotheses.md: hypotheses.mjs ID MODULE RUNS HOST:PORT…
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { Redis } = require('ioredis')
const [id, module, runs, ...addresses] = process.argv.slice(2)
const library = require(module)
const Redlock = library.Redlock ?? library.default

const masters = addresses.map(address => new Redis(`redis://${address}`))

// S29: of four masters, two have a key of another owner.
async function neverReturns (key) {
  await Promise.all(masters.slice(0, 2).map(m => m.set(key, 'another', 'PX', 60000)))
  const acquired = new Redlock(masters, { retryCount: 2 }).acquire([key], 5000).then(() => 'granted', () => 'refused')
  const outcome = await Promise.race([acquired, new Promise(resolve => setTimeout(resolve, 10000, 'has not returned after 10 s'))])
  return [outcome.startsWith('has not'), `acquire ${outcome}`]
}

// S31: `using` runs with a lock of 3 s that another client takes over at once.
async function abortsLate (key) {
  let late
  await new Redlock(masters).using([key], 3000, async signal => {
    const expires = Date.now() + 3000
    await Promise.all(masters.map(m => m.set(key, 'another', 'PX', 60000)))
    await new Promise(resolve => { signal.addEventListener('abort', resolve) })
    late = Date.now() - expires
  }).catch(() => {}) // the release fails too: the lock is another's
  return [late > 0, `the signal aborted ${late} ms after the lock had expired, ${late + 3000} ms after it was lost`]
}

let seen = 0
for (let n = 0; n < +runs; n++) {
  const [reproduced, what] = await { S29: neverReturns, S31: abortsLate }[id](`hypothesis-${process.pid}-${n}`)
  seen += reproduced
  console.log(id, module, what)
}
console.log(id, module, 'reproduced in', seen, 'of', runs, 'runs')
process.exit(0)
