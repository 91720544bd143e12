package scenarios

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

//go:embed *.yaml
var files embed.FS

// order is the one in which people read the scenarios.
//
//nolint:gochecknoglobals // a table, never changed
var order = []string{
	"failover", "failover-wait-1", "failover-wait-all", "failover-wait-only-replica", "wait-starved",
	"master-restart-empty", "split-brain", "min-replicas", "no-min-replicas", "skewed-replica", "token-failover",
	"cluster-failover", "cluster-lost-write", "gc-pause", "gc-pause-replies", "fenced-pause", "plain-del",
	"compare-and-delete", "clock-jump", "clock-jump-back", "clock-drift", "client-clocks", "power-loss-single",
	"expiry-while-down", "key-deleted", "flushall", "reply-lost-acquire", "reply-lost-release", "lost-wake-up",
	"message-lost", "message-trusted", "thundering-herd", "fair-herd", "contention", "narrow-network",
	"script-flush", "read-only-demotion", "watchdog-dead-client", "stuck-holder", "setnx-crash", "expire-lost",
	"redlock-contention", "redlock-jitter", "redlock-two-masters-down", "redlock-restart-empty",
	"redlock-restart-delayed", "redlock-restart-early", "redlock-everysec", "redlock-always",
	"redlock-kill-everysec", "redlock-clock-jump", "redlock-slow-majority", "redlock-replies-late",
	"redlock-no-validity", "redlock-reply-lost", "redlock-partitioned-holder", "redlock-fenced-pause",
	"semaphore-failover", "permits-dead-client", "readers-writer-pause", "swarm-single", "swarm",
}

// Catalog is every named scenario, in the order in which people read them.
func Catalog() ([]Scenario, error) {
	list := make([]Scenario, 0, len(order))
	for _, name := range order {
		s, err := Load(name, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// Names are the names of the named scenarios.
func Names() []string { return append([]string(nil), order...) }

// Load reads the scenario of that name, or from a file: anything that has a
// path separator or ends in .yaml or .yml is a file. Each override is
// path=value, such as workload.clients=10, and is put in place before the
// scenario is judged. The error of a bad scenario shows line and column; that of
// a bad override names it.
func Load(name string, overrides []string) (Scenario, error) {
	return LoadWith(name, Sets(overrides))
}

// LoadWith is Load with overrides that say where they are from.
func LoadWith(name string, overrides []Override) (Scenario, error) {
	source, err := read(name)
	if err != nil {
		return Scenario{}, err
	}
	return parse(source, overrides)
}

func read(name string) ([]byte, error) {
	if isFile(name) {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
		return source, nil
	}
	source, err := files.ReadFile(name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("no scenario is called %q%s", name, nearest.Hint(name, order))
	}
	return source, err
}

func isFile(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) ||
		strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse reads a scenario from YAML text and checks it. Overrides are as in [Load].
func Parse(source []byte, overrides []string) (Scenario, error) {
	return parse(source, Sets(overrides))
}

func parse(source []byte, overrides []Override) (s Scenario, err error) {
	defer func() {
		if p := recover(); p != nil { // the YAML library does, on broken texts that fuzzing has found
			s, err = Scenario{}, fmt.Errorf("scenario: this text is not YAML: %v", p)
		}
	}()
	if len(overrides) == 0 {
		s, _, err = decode(source)
		return s, err
	}
	changed, err := override(source, overrides)
	if err != nil {
		return Scenario{}, err
	}
	s, file, err := decode(changed)
	if err != nil {
		return Scenario{}, blame(err, file, source, overrides)
	}
	return s, nil
}

// decode reads and checks a text; file is nil if it is not even YAML.
func decode(source []byte) (s Scenario, file *ast.File, err error) {
	file, err = inspect(source)
	if err != nil {
		return Scenario{}, nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return Scenario{}, nil, errors.New("scenario: the text is empty")
	}
	var n numbers
	if ast.Walk(&n, file.Docs[0].Body); n.err != nil {
		return Scenario{}, file, n.err
	}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&s); err != nil {
		return Scenario{}, file, syntax(err)
	}
	if err := check(s, file); err != nil {
		return Scenario{}, file, err
	}
	return s, file, nil
}

// YAML is the scenario as text that Parse reads.
func (s Scenario) YAML() string {
	text, err := yaml.Marshal(s)
	if err != nil {
		return "# " + err.Error()
	}
	return string(text)
}
