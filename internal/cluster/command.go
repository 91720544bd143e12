package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mattn/go-shellwords"
)

// ClientPort is the name of the port of a server of kind command that clients use.
const ClientPort = "client"

// maxPorts bounds the ports of one server of kind command.
const maxPorts = 8

// placeholder is {host} or {port.client} in a text of a topology of kind command.
var placeholder = regexp.MustCompile(`\{([a-z0-9]+)(?:\.([a-z0-9_-]+))?\}`)

// Placeholders explains the placeholders in texts of a topology of kind command.
const Placeholders = "{host} and {port.NAME} (where the server listens; port client is for clients, others are " +
	"yours), {gate.NAME} (host:port under which others know that port: behind it connections are cut and delayed), " +
	"{peers.NAME} (the gates of all servers, separated by commas), {n2.NAME} (the gate of server n2), {disk} (its " +
	"directory for data), {name} (n1, n2, …), {number} (1, 2, …) and {here} (the directory in which chaos was started)"

// Values are the values of placeholders for one server of kind command.
type Values struct {
	Number int    // from 1
	Host   string // that it listens at
	Disk   string
	Here   string              // the working directory of the run
	Ports  map[string]int      // by name
	Gates  map[string][]string // host:port of the gates of all servers, n1 first, by the name of the port
}

// Expand replaces the placeholders of text, which CheckCommand has accepted.
func (v Values) Expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		words := placeholder.FindStringSubmatch(found)
		switch name, port := words[1], words[2]; name {
		case "host":
			return v.Host
		case "disk":
			return v.Disk
		case "here":
			return v.Here
		case "name":
			return "n" + strconv.Itoa(v.Number)
		case "number":
			return strconv.Itoa(v.Number)
		case "port":
			return strconv.Itoa(v.Ports[port])
		case "gate":
			return v.Gates[port][v.Number-1]
		case "peers":
			return strings.Join(v.Gates[port], ",")
		default:
			return v.Gates[port][nodeNumber(name)-1]
		}
	})
}

// Words splits the command line of a program and then replaces the placeholders, so that a directory with spaces is one
// word.
func (v Values) Words(line string) ([]string, error) {
	words, err := SplitWords(line)
	for i := range words {
		words[i] = v.Expand(words[i])
	}
	return words, err
}

// SplitWords splits a command line as a shell does, which runs none of it: no variables, pipes or other commands.
func SplitWords(line string) ([]string, error) {
	p := shellwords.NewParser()
	words, err := p.Parse(line)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w in %q", err, line)
	case p.Position >= 0:
		return nil, fmt.Errorf("%q is one program with its arguments: a shell is sh -c '…'", line)
	case len(words) == 0:
		return nil, errors.New("a command has the name of a program and its arguments")
	}
	return words, nil
}

// nodeNumber is the number in the name of a node, such as n2; 0 if it is none.
func nodeNumber(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
	if err != nil || !strings.HasPrefix(name, "n") {
		return 0
	}
	return n
}

// PortNames are the ports of each server of a topology of kind command: the clients' port, then the others sorted.
func (t Topology) PortNames() []string {
	others := map[string]bool{}
	for _, text := range t.texts() {
		for _, words := range placeholder.FindAllStringSubmatch(text.value, -1) {
			if words[2] != "" && words[2] != ClientPort {
				others[words[2]] = true
			}
		}
	}
	return append([]string{ClientPort}, slices.Sorted(maps.Keys(others))...)
}

// KeyError is a mistake in one key of a topology.
type KeyError struct {
	Key string // below topology, such as run or ready.tcp
	Err error
}

func (e *KeyError) Error() string { return e.Err.Error() }
func (e *KeyError) Unwrap() error { return e.Err }

// wrong is a mistake in a key of a topology of kind command.
func wrong(key, format string, args ...any) error {
	return &KeyError{key, fmt.Errorf("topology command: "+format, args...)}
}

// text is the value of a key of a topology of kind command, which may have placeholders.
type text struct {
	key, value string
	command    bool // it is a command line
}

// texts are all texts with placeholders, run first.
func (t Topology) texts() []text {
	texts := []text{{"run", t.Run, true}}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		texts = append(texts, text{"env." + name, t.Env[name], false})
	}
	if r := t.Ready; r != nil {
		texts = append(texts, text{"ready.http", r.HTTP, false}, text{"ready.command", r.Command, r.Command != ""})
	}
	if p := t.Role; p != nil {
		texts = append(texts, text{"role.command", p.Command, true})
	}
	if p := t.Sample; p != nil {
		texts = append(texts, text{"sample.command", p.Command, true})
	}
	if p := t.Clock; p != nil {
		texts = append(texts, text{"clock.command", p.Command, true})
	}
	return texts
}

// LacksSamples is why nothing shows who holds a lock at the servers of t; "" if samples do.
func (t Topology) LacksSamples() string {
	switch {
	case t.Given():
		return "nothing shows who holds a lock at servers that the run did not start"
	case t.Kind == Command && t.Sample == nil:
		return "it needs topology.sample, a program that prints who holds the locks"
	}
	return ""
}

// LacksClock is why the clocks of the servers of t cannot be read, so that no effect on them is seen; "" if they can.
func (t Topology) LacksClock() string {
	if t.Kind == Command && t.Clock == nil {
		return "it needs topology.clock, a program that prints the time of a server"
	}
	return ""
}

// program is the name of the servers' program; of servers that run already it is not known.
func (t Topology) program() string {
	words, err := SplitWords(t.Run)
	if err != nil {
		return Command
	}
	return filepath.Base(words[0])
}

// Text is t as YAML on one line.
func (t Topology) Text() string {
	text, _ := json.Marshal(t) // which has the keys of the YAML, but for down_after
	return string(text)
}

// checkCommand checks the fields for kind command alone.
func (t Topology) checkCommand() error {
	if t.Kind != Command {
		if t.Nodes != 0 || t.Addrs != nil || t.ofRun() {
			return fmt.Errorf("nodes, addrs, run, env, ready, role, sample and clock are for topology command, not %s: leave "+
				"them out", cmp.Or(t.Kind, "without a kind"))
		}
		return nil
	}
	if t.Masters != 0 || t.Replicas != 0 {
		return wrong("masters", "it has nodes, not masters and replicas")
	}
	if t.Nodes < 1 || t.Nodes > maxNodes {
		return wrong("nodes", "it has 1 to %d nodes, not %d", maxNodes, t.Nodes)
	}
	if t.Addrs != nil {
		return t.checkAddrs()
	}
	if t.Run == "" {
		return wrong("run", "it needs run: the command line of a server, such as my-server --port {port.client}; or addrs: "+
			"the addresses of servers that run already")
	}
	for _, text := range t.texts() {
		if _, err := SplitWords(text.value); text.command && err != nil {
			return wrong(text.key, "%w", err)
		}
		if err := t.checkPlaceholders(text.value); err != nil {
			return wrong(text.key, "%w in %q; there are %s", err, text.value, Placeholders)
		}
	}
	if n := len(t.PortNames()); n > maxPorts {
		return wrong("run", "a server has at most %d ports, not %d", maxPorts, n)
	}
	return t.checkReady()
}

// ofRun reports whether t has a field for servers that are started.
func (t Topology) ofRun() bool {
	return t.Run != "" || t.Env != nil || t.Ready != nil || t.Role != nil || t.Sample != nil || t.Clock != nil
}

// checkAddrs checks the addresses of servers that run already. An error does not have their text: a user may take them
// for a URL, and write a password there.
func (t Topology) checkAddrs() error {
	if t.ofRun() || t.Nodes != len(t.Addrs) {
		return wrong("addrs", "with addrs the servers run already: leave out nodes, run, env, ready, role, sample and clock")
	}
	for i, addr := range t.Addrs {
		if !IsHostPort(addr) {
			return wrong("addrs", "address %d is not HOST:PORT", i+1)
		}
		if slices.Contains(t.Addrs[:i], addr) {
			return wrong("addrs", "address %d is there twice", i+1)
		}
	}
	return nil
}

// IsHostPort reports whether addr is HOST:PORT, with the number of a port.
func IsHostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, number := strconv.Atoi(port)
	return err == nil && number == nil && host != "" && !strings.ContainsFunc(host, notOfHost) && n >= 1 && n <= 65535
}

// notOfHost reports whether r is in no host name and no address: a letter, a digit, or punctuation of IPv6 is.
func notOfHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:%", r)
}

func (t Topology) checkPlaceholders(text string) error {
	for _, words := range placeholder.FindAllStringSubmatch(text, -1) {
		whole, name, port := words[0], words[1], words[2]
		ofPort := slices.Contains([]string{"port", "gate", "peers"}, name)
		n := nodeNumber(name)
		switch {
		case slices.Contains([]string{"host", "disk", "here", "name", "number"}, name):
			if port != "" {
				return fmt.Errorf("%s is {%s}", whole, name)
			}
		case !ofPort && n == 0:
			return fmt.Errorf("unknown placeholder %s", whole)
		case port == "":
			return fmt.Errorf("%s needs the name of a port: {%s.client}", whole, name)
		case n > t.Nodes:
			return fmt.Errorf("%s: the topology has no node %s", whole, name)
		}
	}
	return nil
}

// checkReady checks that there is at most one condition.
func (t Topology) checkReady() error {
	if t.Ready == nil {
		return nil
	}
	r, set := *t.Ready, 0
	for _, condition := range []string{r.TCP, r.HTTP, r.Command, r.Log} {
		if condition != "" {
			set++
		}
	}
	if set != 1 {
		return wrong("ready", "ready is one of tcp (the name of a port), http (a URL), command (a program that "+
			"exits with 0) and log (a text)")
	}
	if r.TCP != "" && !slices.Contains(t.PortNames(), r.TCP) {
		return wrong("ready.tcp", "ready.tcp is the name of a port, one of %s, not %q",
			strings.Join(t.PortNames(), ", "), r.TCP)
	}
	return nil
}
