package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/target"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/scenarios"
)

// targetFlags say which servers of the user's own a command works on.
type targetFlags struct {
	url          string
	passwordFile string
	ca           string
	cert, key    string
	allow        []string
}

// Environment variables of secrets. They are removed before a client is started.
const (
	passwordVariable         = "CHAOS_TARGET_PASSWORD"
	sentinelPasswordVariable = "CHAOS_TARGET_SENTINEL_PASSWORD"
)

const allowFailover = "failover"

func (t *targetFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.url, "target", "", "use servers of your own: `URL` redis://HOST, rediss://HOST, "+
		"sentinel://HOST/MASTER, cluster://HOST or tcp://HOST:PORT (docs/how-to/target.md)")
	f.StringVar(&t.passwordFile, "target-password-file", "", "`FILE` with the password of the target (default: $"+
		passwordVariable+")")
	f.StringVar(&t.ca, "target-ca", "",
		"`FILE` with the CA certificates that sign the target's certificate (default: the system's)")
	f.StringVar(&t.cert, "target-cert", "", "`FILE` with the client's own certificate, for a target that requires one")
	f.StringVar(&t.key, "target-key", "", "`FILE` with the key of --target-cert")
}

// address reads --target. Without it, the other flags are an error: they would change nothing.
func (t targetFlags) address() (a target.Address, err error) {
	if t.url == "" {
		if words := t.repeat(); len(words) > 0 {
			return a, usage(fmt.Errorf("%s is for servers of your own: it needs --target", words[0]))
		}
		return a, nil
	}
	if a, err = target.ParseAddress(t.url); err != nil {
		return a, usage(fmt.Errorf("--target: %w", err))
	}
	for _, what := range t.allow {
		if what != allowFailover {
			return a, usage(fmt.Errorf("--allow: %q is not %s", what, allowFailover))
		}
	}
	if words := t.repeat(); a.Kind == cluster.Command && len(words) > 2 {
		return a, usage(fmt.Errorf("%s is for Redis: bytes to and from tcp:// are passed on as they are", words[2]))
	}
	return a, nil
}

// on puts s on the servers of --target. It refuses wrong flags about servers before it looks at the machine.
func (t targetFlags) on(s scenarios.Scenario, backend string) (scenarios.Scenario, error) {
	if t.url != "" && backend != autoBackend {
		return s, usage(errors.New("--backend and --target exclude each other"))
	}
	a, err := t.address()
	if err == nil && a.Kind == cluster.Command {
		s, err = servers.AtAddresses(s, a.Topology(), "--target "+t.url)
	}
	return s, errors.Join(usage(err), known("--backend: unknown backend", backend, backendNames()))
}

// config is the configuration by the flags; the keys of the run begin with prefix.
func (t targetFlags) config(prefix string) (cfg target.Config, err error) {
	if cfg.Address, err = t.address(); err != nil {
		return cfg, err
	}
	cfg.Prefix = prefix
	cfg.Secrets = target.Secrets{
		Password: os.Getenv(passwordVariable), SentinelPassword: os.Getenv(sentinelPasswordVariable),
	}
	if err := errors.Join(os.Unsetenv(passwordVariable), os.Unsetenv(sentinelPasswordVariable)); err != nil {
		return cfg, err
	}
	if t.passwordFile != "" {
		text, err := os.ReadFile(t.passwordFile)
		if err != nil {
			return cfg, badPath(err)
		}
		cfg.Secrets.Password = string(bytes.TrimRight(text, "\r\n"))
	}
	if t.ca == "" && t.cert == "" && t.key == "" {
		return cfg, nil
	}
	if !cfg.Address.TLS {
		return cfg, usage(errors.New("--target-ca, --target-cert and --target-key are for a target with TLS: " +
			"rediss://, or ?tls=true"))
	}
	cfg.TLS, err = t.tls()
	return cfg, err
}

func (t targetFlags) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		text, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, badPath(err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, usage(fmt.Errorf("--target-ca: %s has no certificate in PEM format", t.ca))
		}
	}
	if t.cert == "" && t.key == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(t.cert, cmp.Or(t.key, t.cert))
	if err != nil {
		return nil, usage(fmt.Errorf("--target-cert and --target-key: %w", err))
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// repeat are the flags as the command that repeats the run needs them: they contain no secret.
func (t targetFlags) repeat() (words []string) {
	for _, flag := range [][2]string{{"--target", t.url}, {"--target-password-file", t.passwordFile},
		{"--target-ca", t.ca}, {"--target-cert", t.cert}, {"--target-key", t.key}} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	for _, what := range t.allow {
		words = append(words, "--allow", what)
	}
	return words
}

// backend is the backend of a run on the target, and the scenario as it runs there.
func (t targetFlags) backend(
	ctx context.Context, o runOptions, options backend.Options, s scenarios.Scenario,
) (backend.Backend, scenarios.Scenario, error) {
	cfg, err := t.config(cluster.NewPrefix())
	if err != nil {
		return nil, s, err
	}
	b, s, err := servers.OnTarget(ctx, options, cfg, slices.Contains(t.allow, allowFailover), s, o.seed)
	if errors.Is(err, servers.ErrTargetRefused) {
		err = usage(err)
	}
	return b, s, err
}

// examplePrefix is how the keys of a run begin at a target.
const examplePrefix = cluster.AllPrefixes + "ab12cd34ef:"

// cleanTarget removes the keys that a killed run has left at a target.
func cleanTarget(ctx context.Context, s streams, t targetFlags, prefix string, asJSON bool) error {
	cfg, err := t.config(prefix)
	switch {
	case err != nil:
		return err
	case cfg.Address.Kind == cluster.Command:
		return usage(errors.New("--target: chaos does not know the commands of servers at tcp://, so it cannot remove keys"))
	case prefix == "":
		return usage(fmt.Errorf("--target needs the --prefix of the run, such as %s (see keys in run.json)", examplePrefix))
	case !cluster.IsPrefix(prefix):
		return usage(fmt.Errorf("--prefix %q is not the prefix of a run, such as %s (see keys in run.json): chaos clean "+
			"removes no other keys", prefix, examplePrefix))
	}
	found, err := target.Discover(ctx, cfg)
	if err != nil {
		return err
	}
	removed, err := found.RemoveKeys(ctx)
	err = errors.Join(err, found.Close(ctx))
	if asJSON {
		return errors.Join(s.json(map[string][]string{"removed": removed}), err)
	}
	for _, name := range removed {
		fmt.Fprintln(s.out, format.Line(name))
	}
	s.note("removed %s", format.Count(len(removed), "key"))
	return err
}
