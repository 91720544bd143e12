package cluster

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// Role is the reply to ROLE.
type Role struct {
	Name   string // "master" or "slave"
	Offset int64  // of replication
	Links  int    // master: replicas attached
	Link   string // replica: state of the link to its master
}

// ParseRole parses the reply to ROLE:
// "master", offset, replicas - or "slave", host, port, state, offset.
func ParseRole(reply any) (Role, error) {
	if err, ok := reply.(error); ok {
		return Role{}, err
	}
	items, _ := reply.([]any)
	if len(items) == 3 && items[0] == "master" {
		offset, _ := items[1].(int64)
		replicas, _ := items[2].([]any)
		return Role{Name: "master", Offset: offset, Links: len(replicas)}, nil
	}
	if len(items) == 5 && items[0] == "slave" {
		link, _ := items[3].(string)
		offset, _ := items[4].(int64)
		return Role{Name: "slave", Offset: offset, Link: link}, nil
	}
	return Role{}, fmt.Errorf("ROLE: unexpected reply %v", reply)
}

// Reading returns an ask that can read the keys of any node of the topology. In a Redis Cluster, a replica reads keys
// after READONLY, and a master reads keys of a slot that migrates to it after ASKING, which applies to one command
// (redis.io, ASKING).
func Reading(ask Ask, kind string) Ask {
	if kind != Sharded {
		return ask
	}
	return func(commands ...[]string) ([]any, error) {
		sent := [][]string{{"READONLY"}}
		for _, c := range commands {
			sent = append(sent, []string{"ASKING"}, c)
		}
		all, err := ask(sent...)
		if err != nil {
			return nil, err
		}
		replies := make([]any, 0, len(commands))
		for i := 2; i < len(all); i += 2 {
			replies = append(replies, all[i])
		}
		return replies, nil
	}
}

// SampleNode samples a real server in one round trip, and a second one if there are leased permits; see [Witness].
func SampleNode(ask Ask, kind, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	ask = Reading(ask, kind)
	replies, err := ask(slices.Concat([][]string{{"ROLE"}}, KeyCommands(keys))...)
	if err != nil {
		return sample
	}
	role, err := ParseRole(replies[0])
	if err != nil {
		return sample
	}
	seen, err := ReadKeys(ask, keys, replies[1:])
	if err != nil {
		return sample
	}
	sample.Up, sample.Role, sample.Offset, sample.Replicas = true, role.Name, role.Offset, role.Links
	sample.Keys = seen
	return sample
}

// Fields turns a flat list of names and values into a map.
func Fields(reply any) map[string]string {
	items, _ := reply.([]any)
	m := make(map[string]string, len(items)/2)
	for pair := range slices.Chunk(items, 2) {
		if len(pair) == 2 {
			m[fmt.Sprint(pair[0])] = fmt.Sprint(pair[1])
		}
	}
	return m
}
