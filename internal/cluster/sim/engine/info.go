package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// section is a section of INFO.
type section struct {
	name string
	text func(s *Server) string
}

// sections are the sections of INFO, in Redis' order.
func sections() []section {
	return []section{
		{"server", infoServer},
		{"clients", infoClients},
		{"memory", infoMemory},
		{"persistence", infoPersistence},
		{"stats", infoStats},
		{"replication", infoReplication},
		{"cpu", func(*Server) string { return "used_cpu_sys:0.000000\r\nused_cpu_user:0.000000\r\n" }},
		{"errorstats", infoErrors},
		{"cluster", func(s *Server) string { return fmt.Sprintf("cluster_enabled:%d\r\n", bit(s.cfg.Cluster)) }},
		{"keyspace", infoKeyspace},
	}
}

func infoPersistence(s *Server) string {
	status := map[bool]string{false: "ok", true: "err"}[s.saveFailed]
	aof := ""
	if s.cfg.AOF != nil {
		aof = s.cfg.AOF()
	}
	return "loading:0\r\nasync_loading:0\r\nrdb_changes_since_last_save:0\r\nrdb_last_bgsave_status:" + status +
		fmt.Sprintf("\r\naof_enabled:%d\r\naof_last_write_status:ok\r\n", bit(aof != "")) + aof
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func infoServer(s *Server) string {
	mode := "standalone"
	if s.cfg.Cluster {
		mode = "cluster"
	}
	now := s.cfg.Now()
	return fmt.Sprintf("redis_version:%s\r\nredis_mode:%s\r\nos:simulated\r\narch_bits:64\r\n"+
		"process_id:1\r\nrun_id:%s\r\ntcp_port:%d\r\nserver_time_usec:%d\r\nuptime_in_seconds:%d\r\nhz:10\r\n",
		s.cfg.Version, mode, s.runID, s.cfg.Port, now.UnixMicro(), int64(now.Sub(s.started).Seconds()))
}

// infoErrors counts error replies by code.
func infoErrors(s *Server) string {
	var b strings.Builder
	for _, code := range slices.Sorted(maps.Keys(s.stats.errors)) {
		fmt.Fprintf(&b, "errorstat_%s:count=%d\r\n", code, s.stats.errors[code])
	}
	return b.String()
}

// countError counts an error reply by its first word.
func (s *Server) countError(text string) {
	code, _, _ := strings.Cut(text, " ")
	if s.stats.errors == nil {
		s.stats.errors = map[string]int64{}
	}
	s.stats.errors[strings.Clone(code)]++
}

func infoClients(s *Server) string {
	return fmt.Sprintf("connected_clients:%d\r\nmaxclients:%d\r\nblocked_clients:%d\r\n",
		len(s.conns), s.maxClients, len(s.blocked))
}

func infoMemory(s *Server) string {
	return fmt.Sprintf("used_memory:%d\r\nmaxmemory:%d\r\nmaxmemory_policy:%s\r\n",
		s.usedMemory(), s.maxMemory, s.config["maxmemory-policy"])
}

func infoStats(s *Server) string {
	return fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\nrejected_connections:%d\r\n"+
		"expired_keys:%d\r\nevicted_keys:%d\r\nkeyspace_hits:%d\r\nkeyspace_misses:%d\r\n"+
		"pubsub_channels:%d\r\npubsub_patterns:%d\r\npubsubshard_channels:%d\r\n",
		s.stats.connections, s.stats.commands, s.stats.refused,
		s.stats.expired, s.stats.evicted, s.stats.hits, s.stats.misses,
		s.channels.len(), s.patterns.len(), s.shards.len())
}

func infoReplication(s *Server) string {
	return fmt.Sprintf("role:master\r\nconnected_slaves:0\r\nmaster_replid:%s\r\nmaster_repl_offset:0\r\n", s.runID)
}

func infoKeyspace(s *Server) string {
	var b strings.Builder
	for _, db := range s.dbs {
		if db.keys.len() == 0 {
			continue
		}
		expires := 0
		for _, o := range db.keys.all() {
			expires += bit(o.expires != never)
		}
		fmt.Fprintf(&b, "db%d:keys=%d,expires=%d,avg_ttl=0\r\n", db.id, db.keys.len(), expires)
	}
	return b.String()
}

func cmdInfo(c *Conn, args [][]byte) {
	want := func(name string) bool {
		return slices.ContainsFunc(args[1:], func(a []byte) bool { return is(a, name) })
	}
	all := len(args) == 1 || want("all") || want("default") || want("everything")
	var parts []string
	for _, sec := range sections() {
		if !all && !want(sec.name) {
			continue
		}
		text := ""
		if c.s.cfg.Info != nil {
			text = c.s.cfg.Info(sec.name)
		}
		if text == "" {
			text = sec.text(c.s)
		}
		parts = append(parts, "# "+strings.ToUpper(sec.name[:1])+sec.name[1:]+"\r\n"+text)
	}
	c.WriteVerbatim(strings.Join(parts, "\r\n"))
}

const defaultMaxClients = 10000

// defaults are the settings of CONFIG GET; CONFIG SET changes only the reply, except for maxclients, maxmemory and its
// policy, save and dbfilename.
func defaults() map[string]string {
	return map[string]string{
		"maxmemory": "0", "maxmemory-policy": "noeviction", "save": "", "appendonly": "no", "appendfsync": "everysec",
		"dir": "/", "dbfilename": "dump.rdb", "timeout": "0",
		"databases": strconv.Itoa(databases), "notify-keyspace-events": "",
		"min-replicas-to-write": "0", "min-replicas-max-lag": "10", "replica-read-only": "yes",
		"replica-serve-stale-data": "yes", "replica-priority": "100", "lua-time-limit": "5000",
		"maxclients":         strconv.Itoa(defaultMaxClients),
		"repl-diskless-sync": "yes", "tcp-keepalive": "300", "hz": "10", "busy-reply-threshold": "5000",
	}
}

func cmdConfigGet(c *Conn, args [][]byte) {
	var names []string
	for name := range c.s.config {
		if slices.ContainsFunc(args[2:], func(p []byte) bool { return match(strings.ToLower(string(p)), name) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var fields Fields
	for _, name := range names {
		fields = append(fields, name, c.s.config[name])
	}
	c.Write(fields)
}

func cmdConfigSet(c *Conn, args [][]byte) {
	c.FailIf(len(args)%2 == 1, errSyntax)
	for i := 2; i < len(args); i += 2 {
		if _, known := c.s.config[strings.ToLower(string(args[i]))]; !known {
			c.Fail("ERR Unknown option or number of arguments for CONFIG SET - '" + cString(args[i]) + "'")
		}
	}
	for i := 2; i < len(args); i += 2 {
		if bad := checkSetting(strings.ToLower(string(args[i])), string(args[i+1])); bad != "" {
			c.Fail("ERR CONFIG SET failed (possibly related to argument '" + cString(args[i]) + "') - " + bad)
		}
	}
	for i := 2; i < len(args); i += 2 {
		c.s.setSetting(strings.ToLower(string(args[i])), string(args[i+1]))
	}
	c.writeOK()
}

// checkSetting is the error of a value of a setting that the engine implements, or "".
func checkSetting(name, value string) string {
	switch name {
	case "maxclients":
		if n, ok := parseInt([]byte(value)); !ok {
			return "argument couldn't be parsed into an integer"
		} else if n < 1 || n > math.MaxUint32 {
			return "argument must be between 1 and 4294967295 inclusive"
		}
	case "maxmemory":
		if _, ok := parseMemory(value); !ok {
			return "argument must be a memory value"
		}
	case "maxmemory-policy":
		if !slices.Contains(memoryPolicies(), strings.ToLower(value)) {
			return "argument(s) must be one of the following: " + strings.Join(memoryPolicies(), ", ")
		}
	}
	return ""
}

// setSetting changes a setting of CONFIG GET.
func (s *Server) setSetting(name, value string) {
	switch name {
	case "maxmemory":
		s.maxMemory, _ = parseMemory(value)
		value = strconv.FormatInt(s.maxMemory, 10)
	case "maxmemory-policy":
		value = strings.ToLower(value)
	case "maxclients":
		s.maxClients, _ = strconv.Atoi(value)
	}
	s.config[name] = value
}

func cmdConfigResetstat(c *Conn, _ [][]byte) {
	c.s.stats = stats{}
	c.writeOK()
}

func cmdCommand(c *Conn, _ [][]byte) {
	names := c.s.mainCommands()
	c.WriteArray(len(names))
	for _, name := range names {
		c.writeSpec(c.s.table[name])
	}
}

// mainCommands are the names in the table without subcommands, sorted.
func (s *Server) mainCommands() []string {
	return slices.DeleteFunc(s.Commands(), func(name string) bool { return strings.Contains(name, "|") })
}

// writeSpec writes one command as COMMAND does, without categories, tips and key
// specifications.
func (c *Conn) writeSpec(spec *Spec) {
	c.WriteArray(10)
	c.WriteBulkString(spec.Name)
	c.WriteInt(int64(spec.Arity))
	names := spec.Flags.names()
	c.WriteSet(len(names))
	for _, name := range names {
		c.WriteStatus(name)
	}
	for _, n := range []int{spec.First, spec.Last, spec.Step} {
		c.WriteInt(int64(n))
	}
	c.WriteSet(0)
	c.WriteArray(0)
	c.WriteArray(0)
	c.WriteArray(0)
}

func (f Flags) names() []string {
	all := []string{"write", "readonly", "denyoom", "fast", "admin", "pubsub", "noscript", "blocking", "loading", "stale",
		"movablekeys", "no_multi", "allow_busy", "no_auth", "no_mandatory_keys"}
	var names []string
	for i, name := range all {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func cmdCommandCount(c *Conn, _ [][]byte) {
	c.WriteInt(int64(len(c.s.mainCommands())))
}

func cmdCommandDocs(c *Conn, _ [][]byte) { c.WriteMap(0) }

func cmdCommandInfo(c *Conn, args [][]byte) {
	c.WriteArray(len(args) - 2)
	for _, name := range args[2:] {
		if spec := c.s.table[strings.ToLower(string(name))]; spec != nil {
			c.writeSpec(spec)
		} else {
			c.WriteNullArray()
		}
	}
}

func cmdCommandList(c *Conn, args [][]byte) {
	c.FailIf(len(args) > 2, errSyntax)
	c.writeStrings(c.s.mainCommands())
}
