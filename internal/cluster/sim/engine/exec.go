package engine

import (
	"bytes"
	"fmt"
	"strings"
)

// lookup finds the command of args, or returns the error.
func (s *Server) lookup(args [][]byte) (*Spec, string) {
	if len(args) == 0 {
		return nil, "ERR unknown command ''"
	}
	var buf [64]byte
	name := lowerInto(buf[:0], args[0])
	spec := s.table[view(name)]
	if spec == nil {
		return nil, unknown(args)
	}
	if spec.has(container) && len(args) > 1 {
		sub := lowerInto(append(name, '|'), args[1])
		if spec = s.table[view(sub)]; spec == nil {
			return nil, fmt.Sprintf("ERR unknown subcommand '%.128s'. Try %s HELP.",
				cString(args[1]), strings.ToUpper(string(args[0])))
		}
	}
	if spec.Arity > 0 && len(args) != spec.Arity || len(args) < -spec.Arity {
		return spec, wrongArgs(spec.Name)
	}
	return spec, ""
}

func lowerInto(buf, b []byte) []byte {
	for _, x := range b {
		buf = append(buf, lower(x))
	}
	return buf
}

func unknown(args [][]byte) string {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= 128 {
			break
		}
		fmt.Fprintf(&b, "'%s' ", cString(a[:min(len(a), 128-b.Len())]))
	}
	name := cString(args[0][:min(len(args[0]), 128)])
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", name, b.String())
}

// cString is b up to its first zero byte, as printed by C.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

func wrongArgs(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// execute executes a command of a client, as Redis' processCommand.
func (c *Conn) execute(args [][]byte) {
	s := c.s
	s.stats.commands++
	c.cmds++
	c.failed = false
	spec, bad := s.lookup(args)
	if bad == "" {
		c.last = spec.Name
		bad = c.refuse(spec, args)
	}
	if bad != "" {
		c.reject(spec, bad)
		return
	}
	if c.Queueing() && !spec.has(immediate) {
		c.multi.cmds = append(c.multi.cmds, queued{spec, cloneArgs(args)})
		c.multi.flags |= spec.Flags
		c.WriteStatus("QUEUED")
		return
	}
	s.call(c, spec, args)
}

// refuse is the error if a command may not be executed now, or "".
func (c *Conn) refuse(spec *Spec, args [][]byte) string {
	if !c.known && !spec.has(NoAuth) {
		return "NOAUTH Authentication required."
	}
	if bad := c.unpermitted(spec, args); bad != "" {
		return bad
	}
	if c.s.cfg.Guard != nil {
		if bad := c.s.cfg.Guard(c, spec, args); bad != "" {
			return bad
		}
	}
	if !c.s.Busy() {
		if bad := c.outOfMemory(spec, args); bad != "" {
			return bad
		}
		if bad := c.notSaved(spec, args); bad != "" {
			return bad
		}
	}
	if c.resp == 2 && c.subscribed() && !spec.has(whenSubscribed) {
		return "ERR Can't execute '" + spec.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / " +
			"PING / QUIT / RESET are allowed in this context"
	}
	if c.s.loads && !spec.has(Loading) {
		return errLoading
	}
	if c.s.Busy() && !spec.has(AllowBusy) {
		return errBusy
	}
	if c.Queueing() && spec.has(NoMulti) {
		return "ERR Command not allowed inside a transaction"
	}
	return ""
}

// reject replies with an error, which aborts the transaction that the command is part of.
func (c *Conn) reject(spec *Spec, bad string) {
	if spec == nil || spec.Name != "exec" {
		if c.Queueing() {
			c.multi.failed = true
		}
		c.WriteError(bad)
		return
	}
	c.discard()
	if code, _, _ := strings.Cut(bad, " "); code == "MOVED" || code == "ASK" || code == "CLUSTERDOWN" ||
		code == "CROSSSLOT" || code == "TRYAGAIN" {
		c.WriteError(bad)
		return
	}
	c.WriteError("EXECABORT Transaction discarded because of: " + strings.TrimPrefix(bad, "ERR "))
}

// FlagsOf are the flags of a command; for EXEC they include the flags of the queued commands.
func (c *Conn) FlagsOf(spec *Spec) Flags {
	if c.multi != nil && spec.Name == "exec" {
		return spec.Flags | c.multi.flags
	}
	return spec.Flags
}

// EachQueued iterates over the queued commands of a transaction, for a Guard of EXEC.
func (c *Conn) EachQueued(f func(spec *Spec, args [][]byte)) {
	if c.multi == nil {
		return
	}
	for _, q := range c.multi.cmds {
		f(q.spec, q.args)
	}
}

// call executes a command and collects its effects: the command itself if it changed
// anything, unless it called rewrite.
func (s *Server) call(c *Conn, spec *Spec, args [][]byte) {
	before := s.dirty
	if spec.has(Write | Admin) {
		s.version++
	}
	s.instead, s.verbatim = nil, true
	db := c.db
	spec.run(c, args)
	if s.dirty == before || spec.has(gathers) {
		return
	}
	if s.verbatim {
		s.propagate(db, args)
		return
	}
	for _, cmd := range s.instead {
		s.propagate(db, cmd)
	}
	s.instead, s.verbatim = nil, true
}

// run executes a command to its end, or until it fails.
func (spec *Spec) run(c *Conn, args [][]byte) {
	defer func() {
		if p := recover(); p != nil && p != (refusal{}) {
			panic(p)
		}
	}()
	spec.do(c, args)
}

// rewrite sets the command to propagate in place of the current one; no arguments: nothing. It may be called several
// times.
func (s *Server) rewrite(args ...[]byte) {
	s.verbatim = false
	if len(args) > 0 && s.cfg.Propagate != nil {
		s.instead = append(s.instead, args)
	}
}

// propagate collects an effect.
func (s *Server) propagate(db int, cmds ...[][]byte) {
	if s.cfg.Propagate == nil || s.applying {
		return
	}
	for _, args := range cmds {
		s.effects = append(s.effects, effect{db, cloneArgs(args)})
	}
}

// flushEffects passes the collected effects to Propagate, as one unit.
func (s *Server) flushEffects() {
	if len(s.effects) == 0 {
		return
	}
	db := s.effects[0].db
	cmds := make([][][]byte, 0, len(s.effects))
	at := db
	for _, e := range s.effects {
		if e.db != at {
			at = e.db
			cmds = append(cmds, [][]byte{[]byte("SELECT"), itob(int64(at))})
		}
		cmds = append(cmds, e.args)
	}
	clear(s.effects)
	s.effects = s.effects[:0]
	s.cfg.Propagate(db, cmds)
}

// Apply executes commands of a master or a log: without replies, without Guard, and
// without expiring keys. A SELECT among cmds changes the database of those after it.
// Unknown commands are ignored.
func (s *Server) Apply(db int, cmds [][][]byte) {
	s.enter()
	defer s.leave()
	s.applying = true
	defer func() { s.applying = false }()
	c := &Conn{s: s, resp: 2, db: db, script: true}
	for _, args := range cmds {
		if spec, bad := s.lookup(args); bad == "" {
			s.call(c, spec, args)
		}
		c.out = c.out[:0]
	}
}
