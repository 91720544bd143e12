package faults

import (
	"context"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// rights-revoked revokes all channel permissions of the clients' user: a script that publishes fails halfway, after it
// has written. A user created with the defaults of Redis 7 has no channel permissions. Subscribers are disconnected.
var rightsRevokedSpec = aclFault(rules("resetchannels"), rules("allchannels"), Spec{
	Name:    "rights-revoked",
	Doc:     "revokes the clients' permission for all pub/sub channels (ACL SETUSER resetchannels) until healed.",
	Affects: history.AffectsMessages + " " + history.AffectsSubscriptions + " " + history.AffectsRights,
	Source:  "redis.io, ACL: since Redis 7.0 acl-pubsub-default is resetchannels",
	Class:   history.FaultRefuses,
	Object:  history.ObjectSubscriptions,
	Verb:    "refused subscriptions",
})

// aclRules returns rules of ACL SETUSER.
type aclRules func(env Env) []any

// rules are the same in every run.
func rules(some ...any) aclRules { return func(Env) []any { return some } }

// aclFault completes a row that changes the permissions of the clients' user with rules of ACL SETUSER. Sentinels are
// clients too, with the same user: without their channel they would lose each other.
func aclFault(revoke, restore aclRules, s Spec) Spec {
	s.Topologies = []string{cluster.Single, cluster.Replicated, cluster.Sharded, cluster.Quorum}
	s.Resources = ofEachNode("the clients' permissions on ")
	setUser := []any{"ACL", "SETUSER", "default"}
	return adminFault{
		set: func(ctx context.Context, a cluster.Admin, node string, env Env) (undoing, error) {
			_, err := a.Do(ctx, node, slices.Concat(setUser, revoke(env))...)
			return undoneBy(a, node, slices.Concat(setUser, restore(env))...), err
		},
		count:  refusals,
		noun:   "refused command",
		healed: "the clients have all permissions",
	}.spec(s)
}

// refusals counts the commands in ACL LOG, which also has the commands of scripts.
func refusals(ctx context.Context, a cluster.Admin, node string) (n int, err error) {
	reply, err := a.Do(ctx, node, "ACL", "LOG", "128")
	if err != nil {
		return 0, err
	}
	rows, _ := reply.([]any)
	for _, row := range rows {
		if fields, _ := row.([]any); len(fields) > 1 && fields[0] == "count" {
			count, _ := fields[1].(int64)
			n += int(count)
		}
	}
	return n, nil
}
