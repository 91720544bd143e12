package sentinel

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/engine"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// engineConfig is the configuration of a Sentinel's engine: few commands, no data.
func (s *sentinel) engineConfig() engine.Config {
	return engine.Config{
		Now: time.Now, Seed: network.Mix(s.World.Seed, network.NameHash(s.Name)+uint64(s.Life)), Version: s.config.Version,
		Port:     port,
		Password: s.config.Password,
		Guard:    s.guard, Info: s.info,
		Extra: map[string]engine.Command{"sentinel": s.cmdSentinel, "role": s.cmdRole},
	}
}

// allowed reports whether a Sentinel has the command.
func allowed(name string) bool {
	switch name {
	case "ping", "sentinel", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "publish", "info", "role",
		"client", "shutdown", "auth", "hello", "acl", "command", "quit", "reset":
		return true
	}
	return false
}

func (s *sentinel) guard(_ *engine.Conn, _ *engine.Spec, args [][]byte) string {
	name := string(args[0])
	if allowed(strings.ToLower(name)) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ERR unknown command '%.128s', with args beginning with: ", name)
	for _, a := range args[1:] {
		if b.Len() > 128 {
			break
		}
		fmt.Fprintf(&b, "'%.*s' ", 128, a)
	}
	return b.String()
}

func (s *sentinel) info(section string) string {
	if section != "sentinel" {
		return ""
	}
	status := "ok"
	if s.master.odown {
		status = "odown"
	} else if s.master.sdown {
		status = "sdown"
	}
	tilt := 0
	if s.tilt != 0 {
		tilt = 1
	}
	return fmt.Sprintf("# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:%d\r\nsentinel_tilt_since_seconds:%d\r\n"+
		"sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:0\r\n"+
		"master0:name=%s,status=%s,address=%s,slaves=%d,sentinels=%d\r\n", tilt, -1, s.config.Master, status,
		s.currentMaster(), len(s.replicas), len(s.others)+1)
}

func (s *sentinel) cmdRole(c *engine.Conn, _ [][]byte) {
	c.Write([]any{"sentinel", []string{s.config.Master}})
}

// cmdSentinel is SENTINEL and its subcommands.
func (s *sentinel) cmdSentinel(c *engine.Conn, args [][]byte) {
	c.FailIf(len(args) < 2, "ERR wrong number of arguments for 'sentinel' command")
	sub := strings.ToLower(string(args[1]))
	switch sub {
	case "masters":
		s.writeList(c, []*instance{s.master})
		return
	case "myid":
		c.WriteBulkString(s.id)
		return
	}
	known := map[string]func(*engine.Conn){
		"get-master-addr-by-name": s.writeMasterAddr, "ckquorum": s.writeQuorum, "failover": s.writeFailover,
		"master": func(c *engine.Conn) { s.writeInstance(c, s.master) },
		"slaves": s.writeReplicas, "replicas": s.writeReplicas, "sentinels": s.writeOthers,
	}
	do := known[sub]
	switch {
	case do == nil:
		c.WriteError(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try SENTINEL HELP.", args[1]))
	case len(args) != 3:
		c.WriteError("ERR wrong number of arguments for 'sentinel|" + sub + "' command")
	case string(args[2]) == s.config.Master:
		do(c)
	case sub == "get-master-addr-by-name":
		c.WriteNullArray()
	default:
		c.WriteError("ERR No such master with that name")
	}
}

func (s *sentinel) writeMasterAddr(c *engine.Conn) {
	c.Write(strings.Split(s.currentMaster(), ":"))
}

func (s *sentinel) writeReplicas(c *engine.Conn) { s.writeList(c, s.replicas) }

func (s *sentinel) writeOthers(c *engine.Conn) { s.writeList(c, s.others) }

func (s *sentinel) writeList(c *engine.Conn, list []*instance) {
	c.WriteArray(len(list))
	for _, i := range list {
		s.writeInstance(c, i)
	}
}

func (s *sentinel) writeFailover(c *engine.Conn) {
	if err := s.forceFailover(); err != nil {
		c.Fail(err.Error())
	}
	c.WriteStatus("OK")
}

// writeQuorum is SENTINEL CKQUORUM.
func (s *sentinel) writeQuorum(c *engine.Conn) {
	usable := 1
	for _, o := range s.others {
		if !o.sdown {
			usable++
		}
	}
	voters := len(s.others) + 1
	switch {
	case usable < s.config.Quorum:
		c.WriteError(fmt.Sprintf("NOQUORUM %d usable Sentinels. Not enough available Sentinels to reach the specified "+
			"quorum for this master", usable))
	case usable < voters/2+1:
		c.WriteError(fmt.Sprintf("NOQUORUM %d usable Sentinels. Not enough available Sentinels to reach the majority "+
			"and authorize a failover", usable))
	default:
		c.WriteStatus(fmt.Sprintf("OK %d usable Sentinels. Quorum and failover authorization can be reached", usable))
	}
}

// flags are the flags in SENTINEL MASTER, REPLICAS and SENTINELS.
func (i *instance) flags() string {
	list := []string{map[kindOf]string{aMaster: "master", aReplica: "slave", aSentinel: "sentinel"}[i.kind]}
	add := func(on bool, flag string) {
		if on {
			list = append(list, flag)
		}
	}
	add(i.sdown, "s_down")
	add(i.odown, "o_down")
	add(i.wire == nil || !i.wire.up, "disconnected")
	add(i.saysDown, "master_down")
	add(i.inProgress, "failover_in_progress")
	add(i.promoted, "promoted")
	add(i.reconfSent, "reconf_sent")
	add(i.reconfInProgress, "reconf_inprog")
	add(i.reconfDone, "reconf_done")
	return strings.Join(list, ",")
}

// writeInstance writes the reply of SENTINEL MASTER, REPLICAS and SENTINELS for one instance.
func (s *sentinel) writeInstance(c *engine.Conn, i *instance) {
	host, port := network.SplitAddr(i.addr)
	now := s.Millis()
	name := i.addr
	switch i.kind {
	case aMaster:
		name = s.config.Master
	case aSentinel:
		name = i.id
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	f := []string{"name", name, "ip", host, "port", strconv.Itoa(port), "runid", i.id, "flags", i.flags(),
		"last-ok-ping-reply", number(now - i.lastAvail), "last-ping-reply", number(now - i.lastPong),
		"down-after-milliseconds", number(s.downAfter())}
	if i.kind != aSentinel {
		f = append(f, "info-refresh", number(now-i.infoAt),
			"role-reported", map[kindOf]string{aMaster: "master", aReplica: "slave"}[i.role],
			"role-reported-time", number(now-i.roleAt))
	}
	switch i.kind {
	case aMaster:
		f = append(f, "config-epoch", number(i.configEpoch), "num-slaves", strconv.Itoa(len(s.replicas)),
			"num-other-sentinels", strconv.Itoa(len(s.others)), "quorum", strconv.Itoa(s.config.Quorum),
			"failover-timeout", number(failoverTimeout), "parallel-syncs", strconv.Itoa(len(s.config.Servers)-1))
	case aReplica:
		masterHost, masterPort := network.SplitAddr(i.master)
		f = append(f, "master-link-down-time", number(i.linkDown),
			"master-link-status", map[bool]string{true: "ok", false: "err"}[i.linkUp],
			"master-host", masterHost, "master-port", strconv.Itoa(masterPort),
			"slave-priority", strconv.Itoa(i.priority), "slave-repl-offset", number(i.offset), "replica-announced", "1")
	case aSentinel:
		leader := i.leader
		if leader == "" {
			leader = "?"
		}
		f = append(f, "voted-leader", leader, "voted-leader-epoch", number(i.leaderEpoch))
	}
	c.WriteMap(len(f) / 2)
	for _, word := range f {
		c.WriteBulkString(word)
	}
}

// event publishes an event about i (sentinelEvent).
func (s *sentinel) event(name string, i *instance) {
	text := ""
	if i != nil {
		kind := map[kindOf]string{
			aMaster: "master " + s.config.Master, aReplica: "slave " + i.addr, aSentinel: "sentinel " + i.id,
		}
		text = kind[i.kind] + " " + hostPort(i.addr)
		if i.kind != aMaster {
			text += " @ " + s.config.Master + " " + hostPort(s.master.addr)
		}
	}
	s.publish(name, text)
}

// publish queues a message for subscribers; done sends it.
func (s *sentinel) publish(channel, text string) {
	s.history = append(s.history, channel+" "+text)
	s.owed = append(s.owed, [2]string{channel, text})
}

// done sends queued messages and replies.
func (s *sentinel) done() {
	for len(s.owed) > 0 {
		m := s.owed[0]
		s.owed = s.owed[1:]
		s.events.Do([][]byte{[]byte("PUBLISH"), []byte(m[0]), []byte(m[1])})
	}
	for len(s.dirty) > 0 {
		list := s.dirty
		s.dirty = nil
		for _, c := range list {
			c.Flush(0)
		}
	}
}

// session is the Sentinel's end of a connection from a client or another Sentinel.
type session struct {
	network.Output
	network.HostEnd
	sentinel *sentinel
	peer     *engine.Conn // nil: not a client, or no data yet
}

func (s *sentinel) Accept(c *network.Conn) network.End {
	return &session{Output: network.Output{Conn: c}, HostEnd: s.End(), sentinel: s}
}

func (v *session) Receive(seg network.Segment) {
	if !v.Alive() {
		return
	}
	s := v.sentinel
	reply := func(msg any, size int64) { v.Conn.Send(network.Back, network.Segment{Msg: msg, Size: size}) }
	switch m := seg.Msg.(type) {
	case Ping:
		reply(Pong{}, SmallSize)
	case Hello:
		s.receiveHello(m)
	case isDown:
		reply(s.replyIsDown(m), SmallSize*2)
	case nil:
		if v.peer == nil {
			v.peer = s.server.Open(v.Conn.Source, v.push)
		}
		v.peer.Feed(seg.Data)
	}
	s.done()
}

func (v *session) push(p []byte) {
	if v.Add(p) {
		v.sentinel.dirty = append(v.sentinel.dirty, v)
	}
}

func (v *session) Broken(error) {
	if v.Alive() && v.peer != nil {
		v.peer.Close()
	}
}
