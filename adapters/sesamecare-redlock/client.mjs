// @sesamecare-oss/redlock over ioredis: client.mjs redlock | redlock-one-try.
import { createRequire } from 'node:module'
import { serve } from './protocol.mjs'
import { redlockClient } from './redlock.mjs'

serve(redlockClient(createRequire(import.meta.url)('@sesamecare-oss/redlock'), process.argv[2]))
