package engine

import "slices"

// subscribers of a channel or pattern, in order of subscription.
type subscribers struct{ conns []*Conn }

// feed is one of the three kinds of subscription: channels, patterns, shard channels.
type feed struct {
	in, out string // first words of the confirmations
	all     *dict[*subscribers]
	own     *dict[struct{}]
}

func (c *Conn) channelFeed() feed {
	return feed{"subscribe", "unsubscribe", &c.s.channels, &c.channels}
}

func (c *Conn) patternFeed() feed {
	return feed{"psubscribe", "punsubscribe", &c.s.patterns, &c.patterns}
}

func (c *Conn) shardFeed() feed { return feed{"ssubscribe", "sunsubscribe", &c.s.shards, &c.shards} }

// subscribed reports whether a RESP2 client is in subscribed mode.
func (c *Conn) subscribed() bool { return c.channels.len()+c.patterns.len()+c.shards.len() > 0 }

// Subscriptions is how many channels, patterns and shard channels the connection is subscribed to.
func (c *Conn) Subscriptions() int { return c.channels.len() + c.patterns.len() + c.shards.len() }

// count is the number in a confirmation: shard channels are counted separately.
func (c *Conn) count(f feed) int64 {
	if f.own == &c.shards {
		return int64(c.shards.len())
	}
	return int64(c.channels.len() + c.patterns.len())
}

func (c *Conn) subscribe(f feed, names [][]byte) {
	for _, name := range names {
		if f.own.set(view(name), struct{}{}) {
			subs, ok := f.all.get(view(name))
			if !ok {
				subs = &subscribers{}
				f.all.set(view(name), subs)
			}
			subs.conns = append(subs.conns, c)
		}
		c.confirm(f, f.in, view(name), false)
	}
}

func (c *Conn) confirm(f feed, what, name string, null bool) {
	c.WritePush(3)
	c.WriteBulkString(what)
	if null {
		c.WriteNull()
	} else {
		c.WriteBulkString(name)
	}
	c.WriteInt(c.count(f))
}

func (c *Conn) unsubscribe(f feed, names [][]byte) {
	if len(names) == 0 {
		for name := range f.own.all() {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			c.confirm(f, f.out, "", true)
		}
	}
	for _, name := range names {
		c.leaveChannel(f, view(name))
		c.confirm(f, f.out, view(name), false)
	}
}

func (c *Conn) leaveChannel(f feed, name string) {
	if _, was := f.own.del(name); !was {
		return
	}
	subs, _ := f.all.get(name)
	subs.conns = slices.DeleteFunc(subs.conns, func(o *Conn) bool { return o == c })
	if len(subs.conns) == 0 {
		f.all.del(name)
	}
}

// EndShardSubscriptions unsubscribes everyone from shard channels, as a server does that loses their slot.
func (s *Server) EndShardSubscriptions(of func(channel string) bool) {
	s.Serve(func() {
		for _, c := range s.conns {
			var names [][]byte
			for name := range c.shards.all() {
				if of(name) {
					names = append(names, []byte(name))
				}
			}
			if len(names) > 0 {
				c.unsubscribe(c.shardFeed(), names)
			}
		}
	})
}

func (c *Conn) unsubscribeAll() {
	for _, f := range []feed{c.channelFeed(), c.patternFeed(), c.shardFeed()} {
		for f.own.len() > 0 {
			for name := range f.own.all() {
				c.leaveChannel(f, name)
				break
			}
		}
	}
}

func cmdSubscribe(c *Conn, args [][]byte)  { c.subscribe(c.channelFeed(), args[1:]) }
func cmdPsubscribe(c *Conn, args [][]byte) { c.subscribe(c.patternFeed(), args[1:]) }

func cmdSsubscribe(c *Conn, args [][]byte) {
	c.FailIf(!c.MayBlock(), "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
	c.subscribe(c.shardFeed(), args[1:])
}

func cmdUnsubscribe(c *Conn, args [][]byte)  { c.unsubscribe(c.channelFeed(), args[1:]) }
func cmdPunsubscribe(c *Conn, args [][]byte) { c.unsubscribe(c.patternFeed(), args[1:]) }
func cmdSunsubscribe(c *Conn, args [][]byte) { c.unsubscribe(c.shardFeed(), args[1:]) }

// Publish delivers a message to the subscribers of this server and returns how many there were; shard: to SSUBSCRIBE's.
// It is for messages from other nodes and must be called inside [Server.Serve].
func (s *Server) Publish(channel, message []byte, shard bool) int {
	all, kind := &s.channels, "message"
	if shard {
		all, kind = &s.shards, "smessage"
	}
	n := 0
	if subs, ok := all.get(view(channel)); ok {
		for _, c := range subs.conns {
			c.WritePush(3)
			c.WriteBulkString(kind)
			c.WriteBulk(channel)
			c.WriteBulk(message)
			n++
		}
	}
	if shard {
		return n
	}
	for pattern, subs := range s.patterns.all() {
		if !match(pattern, view(channel)) {
			continue
		}
		for _, c := range subs.conns {
			c.WritePush(4)
			c.WriteBulkString("pmessage")
			c.WriteBulkString(pattern)
			c.WriteBulk(channel)
			c.WriteBulk(message)
			n++
		}
	}
	return n
}

func cmdPublish(c *Conn, args [][]byte)  { c.publish(args, false) }
func cmdSpublish(c *Conn, args [][]byte) { c.publish(args, true) }

func (c *Conn) publish(args [][]byte, shard bool) {
	n := c.s.Publish(args[1], args[2], shard)
	if c.s.cfg.Broadcast != nil {
		c.s.cfg.Broadcast(args[1], args[2], shard)
	} else {
		c.s.propagate(c.db, args)
	}
	c.WriteInt(int64(n))
}

func cmdPubsubChannels(c *Conn, args [][]byte)      { c.listChannels(&c.s.channels, args) }
func cmdPubsubShardchannels(c *Conn, args [][]byte) { c.listChannels(&c.s.shards, args) }

func (c *Conn) listChannels(all *dict[*subscribers], args [][]byte) {
	pattern := args[2:]
	if len(pattern) > 1 {
		c.Fail("ERR unknown subcommand or wrong number of arguments for '" + cString(args[1]) + "'. Try PUBSUB HELP.")
	}
	var found []string
	for name := range all.all() {
		if len(pattern) == 0 || match(view(pattern[0]), name) {
			found = append(found, name)
		}
	}
	c.writeStrings(found)
}

func cmdPubsubNumsub(c *Conn, args [][]byte)      { c.countChannels(&c.s.channels, args[2:]) }
func cmdPubsubShardnumsub(c *Conn, args [][]byte) { c.countChannels(&c.s.shards, args[2:]) }

func (c *Conn) countChannels(all *dict[*subscribers], names [][]byte) {
	c.WriteArray(2 * len(names))
	for _, name := range names {
		c.WriteBulk(name)
		n := 0
		if subs, ok := all.get(view(name)); ok {
			n = len(subs.conns)
		}
		c.WriteInt(int64(n))
	}
}

func cmdPubsubNumpat(c *Conn, _ [][]byte) { c.WriteInt(int64(c.s.patterns.len())) }
