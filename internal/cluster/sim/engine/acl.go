package engine

import (
	"maps"
	"slices"
	"strings"
)

// rights are the permissions of the user "default", the only one: Redis' ACL without keys, passwords and selectors.
type rights struct {
	denied      map[string]bool // commands, by name, or subcommands
	allChannels bool
	channels    []string // patterns; unused with allChannels
	log         []aclEntry
}

// aclEntry is a row of ACL LOG: refusals that differ in time only are one row.
type aclEntry struct {
	reason, context, object string
	count                   int64
}

const maxACLLog = 128 // acllog-max-len

func newRights() rights { return rights{denied: map[string]bool{}, allChannels: true} }

// Reasons of a refusal, as in ACL LOG.
const (
	deniedCommand = "command"
	deniedChannel = "channel"
)

// permit checks a command; reason is "" if it is permitted, and object the forbidden command or channel.
func (r *rights) permit(spec *Spec, args [][]byte) (reason, object string) {
	if r.denied[spec.Name] && !spec.has(NoAuth) {
		return deniedCommand, spec.Name
	}
	if r.allChannels {
		return "", ""
	}
	for _, name := range channelsOf(spec, args) {
		if !r.channel(view(name), spec.Name == "psubscribe") {
			return deniedChannel, string(name)
		}
	}
	return "", ""
}

// channelsOf are the arguments that name channels or patterns that the user must have a right to.
func channelsOf(spec *Spec, args [][]byte) [][]byte {
	switch spec.Name {
	case "publish", "spublish":
		return args[1:2]
	case "subscribe", "ssubscribe", "psubscribe":
		return args[1:]
	}
	return nil
}

// channel reports whether the user may use a channel; a pattern must be the same as one of its own.
func (r *rights) channel(name string, isPattern bool) bool {
	return r.allChannels || slices.ContainsFunc(r.channels, func(own string) bool {
		return isPattern && own == name || !isPattern && match(own, name)
	})
}

// note adds a refusal to ACL LOG.
func (r *rights) note(reason, context, object string) {
	e := aclEntry{reason, context, object, 1}
	for i, old := range r.log {
		if old.reason == reason && old.context == context && old.object == object {
			e.count += old.count
			r.log = slices.Delete(r.log, i, i+1)
			break
		}
	}
	r.log = slices.Insert(r.log, 0, e)
	r.log = r.log[:min(len(r.log), maxACLLog)]
}

// unpermitted is the error if the user may not execute a command, or "".
func (c *Conn) unpermitted(spec *Spec, args [][]byte) string {
	reason, object := c.s.rights.permit(spec, args)
	if reason == "" {
		return ""
	}
	context := "toplevel"
	if c.multi != nil {
		context = "multi"
	}
	c.s.rights.note(reason, context, object)
	if reason == deniedChannel {
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	}
	return "NOPERM this user has no permissions to run the '" + spec.Name + "' command"
}

// unpermittedInScript is the error if the user may not execute a command that a script calls, or "".
func (s *Server) unpermittedInScript(spec *Spec, args [][]byte) string {
	reason, object := s.rights.permit(spec, args)
	if reason == "" {
		return ""
	}
	s.rights.note(reason, "lua", object)
	if reason == deniedChannel {
		return "The user executing the script can't publish to the channel mentioned in the command"
	}
	return "The user executing the script can't run this command or subcommand"
}

// unpermittedInExec is the error if the user has lost the right to a queued command since, or "".
func (s *Server) unpermittedInExec(q queued) string {
	reason, object := s.rights.permit(q.spec, q.args)
	if reason == "" {
		return ""
	}
	s.rights.note(reason, "multi", object)
	why := "no permission to execute the command or subcommand"
	if reason == deniedChannel {
		why = "no permission to publish to the specified channel"
	}
	return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + why
}

func cmdAclWhoami(c *Conn, _ [][]byte) { c.WriteBulkString("default") }

func cmdAclSetuser(c *Conn, args [][]byte) {
	c.FailIf(string(args[2]) != "default", "ERR a simulated server has no user but default")
	changed := c.s.rights.clone()
	for _, rule := range args[3:] {
		if bad := changed.apply(c.s.table, string(rule)); bad != "" {
			c.Fail("ERR Error in ACL SETUSER modifier '" + cString(rule) + "': " + bad)
		}
	}
	c.s.rights = changed
	for _, o := range slices.Clone(c.s.conns) { // subscribers that lost a right are disconnected
		if o.subscribed() && !o.maySubscribe() {
			o.out = nil
			o.end()
		}
	}
	c.writeOK()
}

func (r rights) clone() rights {
	r.denied, r.channels = maps.Clone(r.denied), slices.Clone(r.channels)
	return r
}

// maySubscribe reports whether the user has the right to everything that the connection is subscribed to.
func (c *Conn) maySubscribe() bool {
	for _, f := range []feed{c.channelFeed(), c.patternFeed(), c.shardFeed()} {
		for name := range f.own.all() {
			if !c.s.rights.channel(name, f.own == &c.patterns) {
				return false
			}
		}
	}
	return true
}

// apply applies one rule of ACL SETUSER, or returns the error.
func (r *rights) apply(table map[string]*Spec, rule string) (bad string) {
	switch {
	case rule == "resetchannels":
		r.allChannels, r.channels = false, nil
	case rule == "allchannels", rule == "&*":
		r.allChannels, r.channels = true, nil
	case strings.HasPrefix(rule, "&"):
		if r.allChannels {
			return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any " +
				"effect. Try 'resetchannels' to start with an empty list of channels"
		}
		if !slices.Contains(r.channels, rule[1:]) {
			r.channels = append(r.channels, rule[1:])
		}
	case rule == "allcommands", rule == "nocommands":
		return r.command(table, map[string]string{"allcommands": "+@all", "nocommands": "-@all"}[rule])
	case rule == "on", rule == "nopass", rule == "allkeys", rule == "~*": // as it is
	case strings.HasPrefix(rule, "+"), strings.HasPrefix(rule, "-"):
		return r.command(table, rule)
	default:
		return "Syntax error"
	}
	return ""
}

// category reports whether a command is in an ACL category that follows from its flags;
// nil: no such category.
func category(name string) func(*Spec) bool {
	flags := map[string]Flags{"write": Write, "pubsub": PubSub, "admin": Admin, "blocking": Blocking, "fast": Fast}
	switch flag := flags[name]; {
	case flag != 0:
		return func(spec *Spec) bool { return spec.has(flag) }
	case name == "all":
		return func(*Spec) bool { return true }
	case name == "slow":
		return func(spec *Spec) bool { return !spec.has(Fast) }
	}
	return nil
}

// command applies a rule for a command, a subcommand or a category.
func (r *rights) command(table map[string]*Spec, rule string) (bad string) {
	deny, name := rule[0] == '-', strings.ToLower(rule[1:])
	chosen := func(spec *Spec) bool {
		return spec.Name == name || strings.HasPrefix(spec.Name, name+"|")
	}
	if word, is := strings.CutPrefix(name, "@"); is {
		chosen = category(word)
	} else if table[name] == nil {
		chosen = nil
	}
	if chosen == nil {
		return "Unknown command or category name in ACL"
	}
	for _, spec := range table { // order does not matter: a map is filled
		if chosen(spec) {
			r.denied[spec.Name] = deny
		}
	}
	return ""
}

func cmdAclLog(c *Conn, args [][]byte) {
	r := &c.s.rights
	count := int64(10)
	c.FailIf(len(args) > 3, "ERR unknown subcommand or wrong number of arguments for 'log'. Try ACL HELP.")
	if len(args) == 3 {
		if is(args[2], "reset") {
			r.log = nil
			c.writeOK()
			return
		}
		count = c.integer(args[2])
	}
	rows := r.log[:min(int64(len(r.log)), max(count, 0))]
	c.WriteArray(len(rows))
	for _, e := range rows {
		c.Write(Fields{"count", e.count, "reason", e.reason, "context", e.context, "object", e.object,
			"username", "default", "age-seconds", "0", "client-info", ""})
	}
}
