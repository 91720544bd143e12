package sim

import (
	"strconv"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
)

// image is all data of a server, as the commands that recreate them: the payload of a FULLRESYNC, and a rewritten
// append-only file.
type image struct {
	dbs  []int
	cmds [][][][]byte // of each database
	size int64
}

// snapshot is the server's data now, keys in the order of their creation.
func (n *node) snapshot() *image {
	img := &image{}
	for _, key := range n.server.Keys() {
		if len(img.dbs) == 0 || img.dbs[len(img.dbs)-1] != key.DB {
			img.dbs, img.cmds = append(img.dbs, key.DB), append(img.cmds, nil)
		}
		last := len(img.cmds) - 1
		img.cmds[last] = append(img.cmds[last], rebuildCommands(n.harness, key)...)
	}
	for _, cmds := range img.cmds {
		img.size += bytes(cmds)
	}
	return img
}

// load replaces all data of the server by img.
func (n *node) load(img *image) {
	n.server.Apply(0, [][][]byte{argv("FLUSHALL")})
	for i, db := range img.dbs {
		n.server.Apply(db, img.cmds[i])
	}
}

func argvs(commands [][]string) [][][]byte {
	all := make([][][]byte, len(commands))
	for i, words := range commands {
		all[i] = argv(words...)
	}
	return all
}

func argv(list ...string) [][]byte {
	all := make([][]byte, len(list))
	for i, w := range list {
		all[i] = []byte(w)
	}
	return all
}

// rebuildCommands is the commands that recreate a key.
func rebuildCommands(h *harness, key engine.Key) [][][]byte {
	read := map[string][]string{"string": {"GET", key.Name}, "hash": {"HGETALL", key.Name},
		"list": {"LRANGE", key.Name, "0", "-1"}, "set": {"SMEMBERS", key.Name},
		"zset": {"ZRANGE", key.Name, "0", "-1", "WITHSCORES"}}[key.Type]
	if read == nil {
		return nil
	}
	got := h.ask([]string{"SELECT", strconv.Itoa(key.DB)}, read, []string{"PEXPIRETIME", key.Name},
		[]string{"SELECT", "0"})
	if len(got) != 4 {
		return nil
	}
	write := []string{map[string]string{"string": "SET", "hash": "HSET", "list": "RPUSH", "set": "SADD",
		"zset": "ZADD"}[key.Type], key.Name}
	switch v := got[1].(type) {
	case string:
		write = append(write, v)
	case []any:
		for i := range v {
			if key.Type == "zset" {
				i ^= 1 // score before member
			}
			s, _ := v[i].(string)
			write = append(write, s)
		}
	}
	cmds := [][][]byte{argv(write...)}
	if ms, ok := got[2].(int64); ok && ms >= 0 {
		cmds = append(cmds, argv("PEXPIREAT", key.Name, strconv.FormatInt(ms, 10)))
	}
	return cmds
}
