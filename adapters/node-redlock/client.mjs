// node-redlock over ioredis: client.mjs redlock | redlock-one-try.
import { createRequire } from 'node:module'
import { serve } from './protocol.mjs'
import { redlockClient } from './redlock.mjs'

const { default: Redlock, ResourceLockedError, ExecutionError } = createRequire(import.meta.url)('redlock')

serve(redlockClient({ Redlock, ResourceLockedError, ExecutionError }, process.argv[2]))
