package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/line"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// commandSoftware is servers of kind [cluster.Command]: programs of the user, which the harness knows from the topology
// alone.
type commandSoftware struct{ *Cluster }

// findProgram finds the program of the servers.
func findProgram(t cluster.Topology) (in installed.Software, err error) {
	words, err := cluster.SplitWords(t.Run)
	if err != nil {
		return in, err
	}
	if in.Program, err = exec.LookPath(words[0]); err != nil {
		return in, fmt.Errorf("%w: the program of topology.run: %w", cluster.ErrEnvironment, err)
	}
	return in, nil
}

// openPortGates opens the gates in front of the ports of s.
func (c *Cluster) openPortGates(s *server) error {
	s.env = append(s.env, serverVariable+"="+s.name)
	for i := range c.topology.PortNames() {
		listen := netip.AddrPortFrom(s.location.Gate.Addr(), s.location.Gate.Port()+uint16(i))
		g, err := gate.Open(gate.Config{
			Listen: listen.String(), Target: s.location.at(s.location.Port + i),
			Identify: func(from netip.AddrPort) string { return c.identifyByProcess(from, listen, s.name) },
		})
		if err != nil {
			return err
		}
		if i == 0 {
			s.gate = g
		} else {
			s.more = append(s.more, g)
		}
	}
	return nil
}

// identifyByProcess names the caller that has connected to a gate of server to. A server of the user may connect from
// any address, so it is recognized by its process; or, in a child of that, by its environment, which some programs
// overwrite (setproctitle).
func (c *Cluster) identifyByProcess(from, listen netip.AddrPort, to string) string {
	if name := ClientAt(from.Addr()); name != cluster.UnknownClient {
		return name
	}
	for _, s := range c.nodes {
		if s.location.Gate.Addr() == from.Addr() { // it connects from the address that it announces
			return s.name
		}
		if p := s.proc.Load(); p != nil {
			if p, ok := p.Process.(*child.Process); ok && p.HasSocket(from, listen) {
				return s.name
			}
		}
	}
	if name, ok := child.SocketVariable(from, listen, serverVariable); ok {
		return name
	}
	return c.identify(from, listen, to)
}

// values are the values of placeholders at s.
func (c commandSoftware) values(s *server) cluster.Values {
	here, _ := os.Getwd() // without one, no relative path of the user's is valid
	v := cluster.Values{Number: s.I, Host: s.location.IP.String(), Disk: s.disk, Here: here,
		Ports: map[string]int{}, Gates: map[string][]string{}}
	for i, name := range c.topology.PortNames() {
		v.Ports[name] = s.location.Port + i
		for _, other := range c.nodes {
			at := netip.AddrPortFrom(other.location.Gate.Addr(), other.location.Gate.Port()+uint16(i))
			v.Gates[name] = append(v.Gates[name], at.String())
		}
	}
	return v
}

// config is empty: a program of the user has its command line.
func (commandSoftware) config(*server) string { return "" }

// prepare is the command line of s, whose environment is set once.
func (c commandSoftware) prepare(_ context.Context, s *server) ([]string, error) {
	v := c.values(s)
	if s.proc.Load() == nil {
		for name, value := range c.topology.Env {
			s.env = append(s.env, name+"="+v.Expand(value))
		}
	}
	words, err := v.Words(c.topology.Run)
	if err != nil {
		return nil, err
	}
	return words[1:], nil
}

// form starts all servers at once, and waits until each is ready.
func (c commandSoftware) form(ctx context.Context) error { return c.launch(ctx, c.nodes) }

// Limits for actions of the user's programs and servers.
const (
	programWait  = 5 * time.Second // for a program that prints a role or a sample
	httpWait     = time.Second     // for a reply to a GET
	programPause = 50 * time.Millisecond
)

// ping reports whether s serves clients, as the topology defines it.
func (c commandSoftware) ping(ctx context.Context, s *server) error {
	ready := cluster.Readiness{TCP: cluster.ClientPort}
	if c.topology.Ready != nil {
		ready = *c.topology.Ready
	}
	switch v := c.values(s); {
	case ready.HTTP != "":
		return getOK(ctx, v.Expand(ready.HTTP))
	case ready.Command != "":
		_, err := c.output(ctx, s, ready.Command, nil)
		if err != nil {
			<-time.After(programPause) // the next try is another process
		}
		return err
	case ready.Log != "":
		return logContains(s.logFile, ready.Log)
	default:
		port := s.location.Port + slices.Index(c.topology.PortNames(), ready.TCP)
		conn, err := line.Dial(ctx, s.location.at(port), "")
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
}

func getOK(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, httpWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode < 200 || reply.StatusCode > 299 {
		return fmt.Errorf("GET %s: %s", url, reply.Status)
	}
	return nil
}

func logContains(file, text string) error {
	log, err := os.ReadFile(file)
	if err == nil && !bytes.Contains(log, []byte(text)) {
		err = fmt.Errorf("the log does not contain %q", text)
	}
	return err
}

// output runs a program of the user for s, and returns its output.
func (c commandSoftware) output(ctx context.Context, s *server, line string, more []string) ([]byte, error) {
	words, err := c.values(s).Words(line)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, programWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], more...)...)
	cmd.Dir, cmd.Env = s.dir, slices.DeleteFunc(append(os.Environ(), s.env...), wallclock.Variable)
	cmd.WaitDelay = time.Second // for a child of its own that keeps the output open
	var message bytes.Buffer
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %.200s", words[0], err, bytes.TrimSpace(message.Bytes()))
	}
	return out, nil
}

// sample is the state of s: it is up while its process runs, and its role and its locks are as the programs of the
// topology print them.
func (c commandSoftware) sample(ctx context.Context, s *server, keys []string) history.Sample {
	sample := history.Sample{Node: s.name, Up: true}
	if len(c.nodes) == 1 {
		sample.Role = "master"
	}
	var errs []error
	if p := c.topology.Role; p != nil {
		out, err := c.output(ctx, s, p.Command, nil)
		if sample.Role = cluster.RoleNamed(string(out)); err == nil && sample.Role == "" {
			err = fmt.Errorf("topology.role printed %.60q, not leader or follower", bytes.TrimSpace(out))
		}
		errs = append(errs, err)
	}
	if p := c.topology.Sample; p != nil && len(keys) > 0 {
		out, err := c.output(ctx, s, p.Command, keys)
		if err == nil {
			sample.Keys, err = cluster.ParseHolders(out)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.log.Debug("no sample", "node", s.name, "error", err)
		return history.Sample{Node: s.name}
	}
	return sample
}

// keys are not known.
func (commandSoftware) keys(context.Context, *server) (map[string]time.Duration, error) {
	return nil, errors.ErrUnsupported
}

// time is as the program of the topology prints it.
func (c commandSoftware) time(ctx context.Context, s *server) (at time.Time, err error) {
	out, err := c.output(ctx, s, c.topology.Clock.Command, nil)
	if err == nil {
		at, err = cluster.ParseSeconds(out)
	}
	return at, err
}
