package engine

// The rows are those of COMMAND of Redis 7.0.15: arity, flags, and where the keys are.

func stringRows() []Spec {
	return []Spec{
		{"append", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdAppend},
		{"decr", 2, Write | DenyOOM | Fast, 1, 1, 1, cmdDecr},
		{"decrby", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdDecrby},
		{"get", 2, ReadOnly | Fast, 1, 1, 1, cmdGet},
		{"getdel", 2, Write | Fast, 1, 1, 1, cmdGetdel},
		{"getex", -2, Write | Fast, 1, 1, 1, cmdGetex},
		{"getrange", 4, ReadOnly, 1, 1, 1, cmdGetrange},
		{"getset", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdGetset},
		{"incr", 2, Write | DenyOOM | Fast, 1, 1, 1, cmdIncr},
		{"incrby", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdIncrby},
		{"incrbyfloat", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdIncrbyfloat},
		{"mget", -2, ReadOnly | Fast, 1, -1, 1, cmdMget},
		{"mset", -3, Write | DenyOOM, 1, -1, 2, cmdMset},
		{"msetnx", -3, Write | DenyOOM, 1, -1, 2, cmdMsetnx},
		{"psetex", 4, Write | DenyOOM, 1, 1, 1, cmdPsetex},
		{"set", -3, Write | DenyOOM, 1, 1, 1, cmdSet},
		{"setex", 4, Write | DenyOOM, 1, 1, 1, cmdSetex},
		{"setnx", 3, Write | DenyOOM | Fast, 1, 1, 1, cmdSetnx},
		{"setrange", 4, Write | DenyOOM, 1, 1, 1, cmdSetrange},
		{"strlen", 2, ReadOnly | Fast, 1, 1, 1, cmdStrlen},
		{"substr", 4, ReadOnly, 1, 1, 1, cmdSubstr},
		{"bitcount", -2, ReadOnly, 1, 1, 1, cmdBitcount},
		{"bitop", -4, Write | DenyOOM, 2, -1, 1, cmdBitop},
		{"bitpos", -3, ReadOnly, 1, 1, 1, cmdBitpos},
		{"getbit", 3, ReadOnly | Fast, 1, 1, 1, cmdGetbit},
		{"setbit", 4, Write | DenyOOM, 1, 1, 1, cmdSetbit},
	}
}

func keyRows() []Spec {
	return []Spec{
		{"copy", -3, Write | DenyOOM, 1, 2, 1, cmdCopy},
		{"del", -2, Write, 1, -1, 1, cmdDel},
		{"dbsize", 1, ReadOnly | Fast, 0, 0, 0, cmdDbsize},
		{"exists", -2, ReadOnly | Fast, 1, -1, 1, cmdExists},
		{"expire", -3, Write | Fast, 1, 1, 1, cmdExpire},
		{"expireat", -3, Write | Fast, 1, 1, 1, cmdExpireat},
		{"expiretime", 2, ReadOnly | Fast, 1, 1, 1, cmdExpiretime},
		{"flushall", -1, Write, 0, 0, 0, cmdFlushall},
		{"flushdb", -1, Write, 0, 0, 0, cmdFlushdb},
		{"keys", 2, ReadOnly, 0, 0, 0, cmdKeys},
		{"move", 3, Write | Fast, 1, 1, 1, cmdMove},
		{"object", -2, container, 0, 0, 0, nothing},
		{"object|encoding", 3, ReadOnly, 2, 2, 1, cmdObjectEncoding},
		{"object|freq", 3, ReadOnly, 2, 2, 1, cmdObjectFreq},
		{"object|idletime", 3, ReadOnly, 2, 2, 1, cmdObjectIdletime},
		{"object|refcount", 3, ReadOnly, 2, 2, 1, cmdObjectRefcount},
		{"persist", 2, Write | Fast, 1, 1, 1, cmdPersist},
		{"pexpire", -3, Write | Fast, 1, 1, 1, cmdPexpire},
		{"pexpireat", -3, Write | Fast, 1, 1, 1, cmdPexpireat},
		{"pexpiretime", 2, ReadOnly | Fast, 1, 1, 1, cmdPexpiretime},
		{"pttl", 2, ReadOnly | Fast, 1, 1, 1, cmdPttl},
		{"randomkey", 1, ReadOnly, 0, 0, 0, cmdRandomkey},
		{"rename", 3, Write, 1, 2, 1, cmdRename},
		{"renamenx", 3, Write | Fast, 1, 2, 1, cmdRenamenx},
		{"scan", -2, ReadOnly, 0, 0, 0, cmdScan},
		{"touch", -2, ReadOnly | Fast, 1, -1, 1, cmdTouch},
		{"ttl", 2, ReadOnly | Fast, 1, 1, 1, cmdTtl},
		{"type", 2, ReadOnly | Fast, 1, 1, 1, cmdType},
		{"unlink", -2, Write | Fast, 1, -1, 1, cmdUnlink},
	}
}

func hashRows() []Spec {
	return []Spec{
		{"hdel", -3, Write | Fast, 1, 1, 1, cmdHdel},
		{"hexists", 3, ReadOnly | Fast, 1, 1, 1, cmdHexists},
		{"hget", 3, ReadOnly | Fast, 1, 1, 1, cmdHget},
		{"hgetall", 2, ReadOnly, 1, 1, 1, cmdHgetall},
		{"hincrby", 4, Write | DenyOOM | Fast, 1, 1, 1, cmdHincrby},
		{"hincrbyfloat", 4, Write | DenyOOM | Fast, 1, 1, 1, cmdHincrbyfloat},
		{"hkeys", 2, ReadOnly, 1, 1, 1, cmdHkeys},
		{"hlen", 2, ReadOnly | Fast, 1, 1, 1, cmdHlen},
		{"hmget", -3, ReadOnly | Fast, 1, 1, 1, cmdHmget},
		{"hmset", -4, Write | DenyOOM | Fast, 1, 1, 1, cmdHmset},
		{"hrandfield", -2, ReadOnly, 1, 1, 1, cmdHrandfield},
		{"hscan", -3, ReadOnly, 1, 1, 1, cmdHscan},
		{"hset", -4, Write | DenyOOM | Fast, 1, 1, 1, cmdHset},
		{"hsetnx", 4, Write | DenyOOM | Fast, 1, 1, 1, cmdHsetnx},
		{"hstrlen", 3, ReadOnly | Fast, 1, 1, 1, cmdHstrlen},
		{"hvals", 2, ReadOnly, 1, 1, 1, cmdHvals},
	}
}

func sessionRows() []Spec {
	return []Spec{
		{"asking", 1, Fast, 0, 0, 0, cmdAsking},
		{"auth", -2, NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, 0, 0, 0, cmdAuth},
		{"client", -2, container, 0, 0, 0, nothing},
		{"client|getname", 2, NoScript | Loading | Stale, 0, 0, 0, cmdClientGetname},
		{"client|getredir", 2, NoScript | Loading | Stale, 0, 0, 0, cmdClientGetredir},
		{"client|id", 2, NoScript | Loading | Stale, 0, 0, 0, cmdClientId},
		{"client|info", 2, NoScript | Loading | Stale, 0, 0, 0, cmdClientInfo},
		{"client|kill", -3, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdClientKill},
		{"client|list", -2, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdClientList},
		{"client|no-evict", 3, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdClientNoEvict},
		{"client|setname", 3, NoScript | Loading | Stale, 0, 0, 0, cmdClientSetname},
		{"client|tracking", -3, NoScript | Loading | Stale, 0, 0, 0, cmdClientTracking},
		{"client|trackinginfo", 2, NoScript | Loading | Stale, 0, 0, 0, cmdClientTrackinginfo},
		{"client|unblock", -3, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdClientUnblock},
		{"discard", 1, NoScript | Loading | Stale | Fast | AllowBusy | immediate, 0, 0, 0, cmdDiscard},
		{"echo", 2, Loading | Stale | Fast, 0, 0, 0, cmdEcho},
		{"eval", -3, NoScript | Stale | NoMandatoryKeys | MovableKeys | gathers, 0, 0, 0, cmdEval},
		{"eval_ro", -3, ReadOnly | NoScript | Stale | NoMandatoryKeys | MovableKeys | gathers, 0, 0, 0, cmdEvalRo},
		{"evalsha", -3, NoScript | Stale | NoMandatoryKeys | MovableKeys | gathers, 0, 0, 0, cmdEvalsha},
		{"evalsha_ro", -3, ReadOnly | NoScript | Stale | NoMandatoryKeys | MovableKeys | gathers, 0, 0, 0, cmdEvalshaRo},
		{"exec", 1, NoScript | Loading | Stale | gathers | immediate, 0, 0, 0, cmdExec},
		{"hello", -1, NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, 0, 0, 0, cmdHello},
		{"multi", 1, NoScript | Loading | Stale | Fast | AllowBusy | immediate, 0, 0, 0, cmdMulti},
		{"ping", -1, Fast | whenSubscribed, 0, 0, 0, cmdPing},
		{"quit", -1, NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | immediate | whenSubscribed, 0, 0, 0, cmdQuit},
		{"readonly", 1, Loading | Stale | Fast, 0, 0, 0, cmdReadonly},
		{"readwrite", 1, Loading | Stale | Fast, 0, 0, 0, cmdReadwrite},
		{"reset", 1, NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | immediate | whenSubscribed, 0, 0, 0, cmdReset},
		{"script", -2, container, 0, 0, 0, nothing},
		{"script|exists", -3, NoScript, 0, 0, 0, cmdScriptExists},
		{"script|flush", -2, NoScript, 0, 0, 0, cmdScriptFlush},
		{"script|kill", 2, NoScript | AllowBusy, 0, 0, 0, cmdScriptKill},
		{"script|load", 3, NoScript | Stale, 0, 0, 0, cmdScriptLoad},
		{"select", 2, Loading | Stale | Fast, 0, 0, 0, cmdSelect},
		{"unwatch", 1, NoScript | Loading | Stale | Fast | AllowBusy, 0, 0, 0, cmdUnwatch},
		{"wait", 3, NoScript, 0, 0, 0, cmdWait},
		{"watch", -2, NoScript | Loading | Stale | Fast | AllowBusy | immediate, 1, -1, 1, cmdWatch},
	}
}

func pubsubRows() []Spec {
	return []Spec{
		{"psubscribe", -2, PubSub | NoScript | Loading | Stale | whenSubscribed, 0, 0, 0, cmdPsubscribe},
		{"publish", 3, PubSub | Loading | Stale | Fast, 0, 0, 0, cmdPublish},
		{"pubsub", -2, container, 0, 0, 0, nothing},
		{"pubsub|channels", -2, PubSub | Loading | Stale, 0, 0, 0, cmdPubsubChannels},
		{"pubsub|numpat", 2, PubSub | Loading | Stale, 0, 0, 0, cmdPubsubNumpat},
		{"pubsub|numsub", -2, PubSub | Loading | Stale, 0, 0, 0, cmdPubsubNumsub},
		{"pubsub|shardchannels", -2, PubSub | Loading | Stale, 0, 0, 0, cmdPubsubShardchannels},
		{"pubsub|shardnumsub", -2, PubSub | Loading | Stale, 0, 0, 0, cmdPubsubShardnumsub},
		{"punsubscribe", -1, PubSub | NoScript | Loading | Stale | whenSubscribed, 0, 0, 0, cmdPunsubscribe},
		{"spublish", 3, PubSub | Loading | Stale | Fast, 1, 1, 1, cmdSpublish},
		{"ssubscribe", -2, PubSub | NoScript | Loading | Stale | whenSubscribed, 1, -1, 1, cmdSsubscribe},
		{"subscribe", -2, PubSub | NoScript | Loading | Stale | whenSubscribed, 0, 0, 0, cmdSubscribe},
		{"sunsubscribe", -1, PubSub | NoScript | Loading | Stale | whenSubscribed, 1, -1, 1, cmdSunsubscribe},
		{"unsubscribe", -1, PubSub | NoScript | Loading | Stale | whenSubscribed, 0, 0, 0, cmdUnsubscribe},
	}
}

func serverRows() []Spec {
	return []Spec{
		{"command", -1, Loading | Stale | container, 0, 0, 0, cmdCommand},
		{"command|count", 2, Loading | Stale, 0, 0, 0, cmdCommandCount},
		{"command|docs", -2, Loading | Stale, 0, 0, 0, cmdCommandDocs},
		{"command|info", -2, Loading | Stale, 0, 0, 0, cmdCommandInfo},
		{"command|list", -2, Loading | Stale, 0, 0, 0, cmdCommandList},
		{"config", -2, container, 0, 0, 0, nothing},
		{"config|get", -3, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdConfigGet},
		{"config|resetstat", 2, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdConfigResetstat},
		{"config|set", -4, Admin | NoScript | Loading | Stale, 0, 0, 0, cmdConfigSet},
		{"info", -1, Loading | Stale, 0, 0, 0, cmdInfo},
		{"role", 1, NoScript | Loading | Stale | Fast, 0, 0, 0, cmdRole},
		{"time", 1, Loading | Stale | Fast, 0, 0, 0, cmdTime},
	}
}
