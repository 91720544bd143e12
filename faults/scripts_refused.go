package faults

import "github.com/lockchaos/lockchaos/history"

// scripts-refused revokes the clients' permission for the commands that run scripts: a request that needs one gets
// NOPERM, and nothing of it is executed.
var scriptsRefusedSpec = aclFault(
	rules("-eval", "-evalsha"), rules("+eval", "+evalsha"),
	Spec{
		Name:    "scripts-refused",
		Doc:     "revokes the clients' permission to run scripts (EVAL, EVALSHA) until healed.",
		Affects: history.AffectsCommands + " " + history.AffectsRights,
		Source:  "redis.io, ACL: the category scripting, which rules for applications leave out",
		Class:   history.FaultRefuses,
		Object:  "scripts",
		Verb:    "refused to run scripts",
	})
