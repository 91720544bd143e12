package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Flags are the flags of a command, as in COMMAND.
type Flags uint32

// Flags of commands.
const (
	Write           Flags = 1 << iota // may change keys
	ReadOnly                          // reads keys, and changes none
	DenyOOM                           // refused when memory is full
	Fast                              // of constant or logarithmic time
	Admin                             // for operators of the server
	PubSub                            // pub/sub
	NoScript                          // not allowed in scripts
	Blocking                          // may block
	Loading                           // allowed while the data set is being loaded
	Stale                             // allowed on a replica that has lost its master
	MovableKeys                       // the positions of keys depend on the arguments
	NoMulti                           // not in a transaction
	AllowBusy                         // allowed while a script runs for too long
	NoAuth                            // allowed before AUTH
	NoMandatoryKeys                   // may have no keys although it has positions for them

	container      // has subcommands
	gathers        // executes other commands, whose effects are propagated
	immediate      // is executed, not queued, in a transaction
	mayReplicate   // is propagated although it changes no key
	whenSubscribed // allowed in RESP2 subscribed mode
)

// Spec is a row of the command table.
type Spec struct {
	Name  string // in lower case; of a subcommand "client|id"
	Arity int    // number of arguments with the name; negative: the least
	Flags Flags
	// First, Last and Step are the positions of keys in the arguments; First 0: no keys, or MovableKeys.
	// A negative Last counts from the end.
	First, Last, Step int
	do                Command
}

func (spec *Spec) has(f Flags) bool { return spec.Flags&f != 0 }

// Keys are the arguments that are keys; they share memory with args.
func (spec *Spec) Keys(args [][]byte) [][]byte {
	if spec.has(MovableKeys) {
		return spec.movable(args)
	}
	if spec.First == 0 {
		return nil
	}
	last := spec.Last
	if last < 0 {
		last += len(args)
	}
	var keys [][]byte
	for i := spec.First; i <= last && i < len(args); i += spec.Step {
		keys = append(keys, args[i])
	}
	return keys
}

// movable finds the keys after their count.
func (spec *Spec) movable(args [][]byte) [][]byte {
	at := 1
	switch spec.Name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "zunionstore", "zinterstore", "zdiffstore", "blmpop", "bzmpop":
		at = 2
	}
	if len(args) <= at {
		return nil
	}
	n, ok := parseInt(args[at])
	if !ok || n < 0 || n > int64(len(args)-at-1) {
		return nil
	}
	keys := args[at+1 : at+1+int(n)]
	if spec.First == 1 { // the destination
		keys = append(slices.Clone(args[1:2]), keys...)
	}
	return keys
}

// baseTable is the command table without additions; it is never modified.
//
//nolint:gochecknoglobals // computed once, never changed
var baseTable = sync.OnceValue(func() map[string]*Spec {
	t := map[string]*Spec{}
	for _, rows := range [][]Spec{
		stringRows(), keyRows(), hashRows(), listRows(), setRows(), zsetRows(),
		sessionRows(), pubsubRows(), serverRows(),
	} {
		for i := range rows {
			t[rows[i].Name] = &rows[i]
		}
	}
	return t
})

func newTable(extra map[string]Command) map[string]*Spec {
	base := baseTable()
	if len(extra) == 0 {
		return base
	}
	t := make(map[string]*Spec, len(base)+len(extra))
	maps.Copy(t, base)
	for name, do := range extra {
		spec := &Spec{Name: name, Arity: -1}
		if known := t[name]; known != nil {
			*spec = *known
		}
		spec.do = do
		t[name] = spec
		if parent, _, sub := strings.Cut(name, "|"); sub && t[parent] == nil {
			t[parent] = &Spec{Name: parent, Arity: -2, Flags: container, do: containerOnly}
		}
	}
	return t
}

// Commands are the names in the table, sorted; a subcommand is "client|id".
func (s *Server) Commands() []string {
	return slices.Sorted(maps.Keys(s.table))
}

// containerOnly is the function of a command with subcommands; it is never called.
func containerOnly(*Conn, [][]byte) {}
