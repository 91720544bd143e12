// Tries S29 of docs/hypotheses.md: hypotheses.mjs MODULE RUNS HOST:PORT…. Of four masters, two have a key of another owner.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { Redis } = require('ioredis')
const [module, runs, ...addresses] = process.argv.slice(2)
const library = require(module)
const Redlock = library.Redlock ?? library.default

const masters = addresses.map(address => new Redis(`redis://${address}`))
let seen = 0
for (let n = 0; n < +runs; n++) {
  const key = `hypothesis-${process.pid}-${n}`
  await Promise.all(masters.slice(0, 2).map(m => m.set(key, 'another', 'PX', 60000)))
  const acquired = new Redlock(masters, { retryCount: 2 }).acquire([key], 5000).then(() => 'granted', () => 'refused')
  const outcome = await Promise.race([acquired, new Promise(resolve => setTimeout(resolve, 10000, 'has not returned after 10 s'))])
  seen += outcome.startsWith('has not')
  console.log('S29', module, 'acquire', outcome)
}
console.log('S29', module, 'reproduced in', seen, 'of', runs, 'runs')
process.exit(0)
