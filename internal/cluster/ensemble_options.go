package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// CheckDirective refuses a line that cannot be one option of the servers of t, and options reserved for the harness.
func (t Topology) CheckDirective(name, value string) error {
	if t.Redis() {
		return checkDirective(name, value)
	}
	return t.checkEnsembleOption(name, value)
}

// CheckOption refuses options that the servers of t would refuse: unknown ones (ErrUnknownOption), and values of
// another type or out of bounds.
func (t Topology) CheckOption(name, value string) error {
	switch {
	case t.Redis():
		return CheckOption(name, value)
	case t.Kind == Command || t.Kind == None:
		return fmt.Errorf("topology %s has no options: a server of your own has its settings in its command line", t.Kind)
	}
	return t.checkEnsembleOption(name, value)
}

// OptionNames are the options that the servers of t have.
func (t Topology) OptionNames() []string {
	list := options()
	if !t.Redis() {
		list = t.ensembleOptions()
	}
	return format.Texts(list, func(o Option) string { return o.Name })
}

// NoFsync is the option of etcd with which it fsyncs nothing.
const NoFsync = "unsafe-no-fsync"

// StandbyNames is the option of PostgreSQL with which commits wait for a standby.
const StandbyNames = "synchronous_standby_names"

// ensembleOptions are the keys of zoo.cfg, the flags of etcd, or the settings of PostgreSQL or MySQL, that a topology
// may set. Addresses, directories and the members are the harness's.
func (t Topology) ensembleOptions() []Option {
	number := func(name string, low int64) Option {
		return Option{Name: name, Type: optionInteger, Min: low, Max: math.MaxInt32}
	}
	if t.Kind == Etcd {
		return []Option{
			number("heartbeat-interval", 1), number("election-timeout", 1), number("snapshot-count", 1),
			{Name: NoFsync, Type: optionBool},
		}
	}
	if t.Kind == Postgres {
		return []Option{
			{Name: "fsync", Type: optionBool}, {Name: "synchronous_commit", Type: optionBool},
			number("max_connections", 10), number("deadlock_timeout", 1), number("lock_timeout", 0),
			number("idle_session_timeout", 0), number("idle_in_transaction_session_timeout", 0),
			number("tcp_user_timeout", 0), number("client_connection_check_interval", 0),
			{Name: StandbyNames, Type: optionWord, Words: []string{"*"}},
		}
	}
	if t.Kind == MySQL {
		list := []Option{
			{Name: "innodb_flush_log_at_trx_commit", Type: optionInteger, Max: 2}, number("max_connections", 10),
			number("idle_transaction_timeout", 0), // MariaDB
		}
		for _, name := range []string{
			"wait_timeout", "interactive_timeout", "innodb_lock_wait_timeout", "lock_wait_timeout", "connect_timeout",
			"net_read_timeout", "net_write_timeout", "innodb_flush_log_at_timeout", "thread_cache_size",
		} {
			list = append(list, number(name, 1))
		}
		return list
	}
	return []Option{
		{Name: "forceSync", Type: optionBool},
		number("tickTime", 10), number("initLimit", 1), number("syncLimit", 1), number("snapCount", 2),
		number("minSessionTimeout", 1), number("maxSessionTimeout", 1),
	}
}

func (t Topology) checkEnsembleOption(name, value string) error {
	list := t.ensembleOptions()
	i := slices.IndexFunc(list, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return fmt.Errorf("%w %q of topology %s, which has %s", ErrUnknownOption, name, t.Kind,
			strings.Join(t.OptionNames(), ", "))
	}
	if name == StandbyNames && t.Replicas == 0 {
		return fmt.Errorf("option %s needs topology.replicas: 1: without a standby, every commit waits forever", name)
	}
	return list[i].check(name, value)
}
