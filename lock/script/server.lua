-- Reports which server this is.
--
-- KEYS: any
-- Reply: {OK, run id}
return {OK, string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')}
