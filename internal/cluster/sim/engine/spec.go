package engine

import (
	"slices"
	"strings"
	"sync"
)

// Flags say what a command does and where it is allowed, as COMMAND tells them.
type Flags uint32

// Flags of commands.
const (
	Write           Flags = 1 << iota // may change keys
	ReadOnly                          // reads keys, and changes none
	DenyOOM                           // refused when memory is full
	Fast                              // of constant or logarithmic time
	Admin                             // for those who run the server
	PubSub                            // of channels
	NoScript                          // not from scripts
	Blocking                          // may wait
	Loading                           // allowed while the data set is being loaded
	Stale                             // allowed on a replica that has lost its master
	MovableKeys                       // where the keys are depends on the arguments
	NoMulti                           // not in a transaction
	AllowBusy                         // allowed while a script runs for too long
	NoAuth                            // allowed before AUTH
	NoMandatoryKeys                   // may have no keys although it has a place for them

	container      // has subcommands
	gathers        // executes other commands, whose effects count
	immediate      // is executed although a transaction is being put together
	mayReplicate   // reaches replicas although it changes no key
	whenSubscribed // allowed to a subscriber of RESP2
)

// Spec is a row of the command table.
type Spec struct {
	Name  string // in lower case; of a subcommand "client|id"
	Arity int    // how many arguments with the name; negative: at least so many
	Flags Flags
	// First, Last and Step are where the keys are among the arguments; First 0: there are none, or MovableKeys.
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

// movable finds the keys behind their number.
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

// baseTable is the command table without additions; it is never changed.
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
	for name, spec := range base {
		t[name] = spec
	}
	for name, do := range extra {
		spec := &Spec{Name: name, Arity: -1}
		if known := t[name]; known != nil {
			*spec = *known
		}
		spec.do = do
		t[name] = spec
		if parent, _, sub := strings.Cut(name, "|"); sub && t[parent] == nil {
			t[parent] = &Spec{Name: parent, Arity: -2, Flags: container, do: nothing}
		}
	}
	return t
}

// Commands are the names in the table, sorted, subcommands with their command as
// in "client|id".
func (s *Server) Commands() []string {
	names := make([]string, 0, len(s.table))
	for name := range s.table {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// nothing is what a command with subcommands does itself; it is never reached.
func nothing(*Conn, [][]byte) {}
