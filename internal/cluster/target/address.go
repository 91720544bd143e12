package target

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Address is where a user's servers are, without any secret.
type Address struct {
	Kind     string   // cluster.Single, Sentinel, Sharded, Quorum, or Command: servers of any kind
	Servers  []string // host:port; of Sentinel: the Sentinels
	Master   string   // Sentinel: name of the master
	Username string   // ACL user; "": default
	Database int      // not of a cluster
	TLS      bool
}

// Default ports and name, as in Redis' own configuration files.
const (
	redisPort     = "6379"
	sentinelPort  = "26379"
	defaultMaster = "mymaster"
)

// errPasswordInURL refuses a password where others could read it: in the list of processes, in a shell's history, and
// in the command that repeats a run.
var errPasswordInURL = errors.New("a password does not belong in a URL: set CHAOS_TARGET_PASSWORD, or use " +
	"--target-password-file")

// ParseAddress reads a URL: redis://[USER@]HOST[:PORT][/DB], rediss://… with TLS, several hosts separated by commas for
// a quorum, sentinel://HOST[:PORT],…[/MASTER] and cluster://HOST[:PORT],…, the last two with ?tls=true; or
// tcp://HOST:PORT,… for servers of any kind. An error never has the text of the URL, which may contain a password.
func ParseAddress(text string) (Address, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return Address{}, errors.New("the target is not a URL: it must begin with redis://, rediss://, sentinel://, " +
			"cluster:// or tcp://")
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	var a Address
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, err := url.PathUnescape(authority[:i])
		if err != nil || strings.ContainsRune(user, ':') {
			return Address{}, errPasswordInURL
		}
		a.Username, authority = user, authority[i+1:]
	}
	path, err := url.Parse(tail)
	if err != nil || path.Fragment != "" {
		return Address{}, errors.New("the target's path is not valid in a URL")
	}
	port := redisPort
	switch scheme {
	case "redis", "rediss":
		a.Kind, a.TLS = cluster.Single, scheme == "rediss"
	case "sentinel":
		a.Kind, port = cluster.Sentinel, sentinelPort
	case "cluster":
		a.Kind = cluster.Sharded
	case "tcp":
		if a.Username != "" || tail != "" {
			return Address{}, errors.New("tcp://HOST:PORT has neither a user nor a path nor options: bytes are passed on as " +
				"they are")
		}
		a.Kind, a.Servers = cluster.Command, strings.Split(authority, ",")
		return a, a.Topology().Validate()
	default:
		return Address{}, fmt.Errorf("unknown scheme %q: use redis, rediss, sentinel, cluster or tcp", scheme)
	}
	if a.Servers, err = hosts(authority, port); err != nil {
		return Address{}, err
	}
	if len(a.Servers) > 1 && a.Kind == cluster.Single {
		a.Kind = cluster.Quorum
	}
	return a, errors.Join(a.readPath(strings.Trim(path.Path, "/")), a.readQuery(path.Query()))
}

// Topology has the addresses of servers of any kind.
func (a Address) Topology() cluster.Topology {
	return cluster.Topology{Kind: a.Kind, Addrs: a.Servers}.Defaults()
}

// hosts are the addresses in a list, with the port where one has none.
func hosts(list, port string) (all []string, err error) {
	for host := range strings.SplitSeq(list, ",") {
		if host == "" {
			return nil, errors.New("the target lacks a host")
		}
		name, number, err := net.SplitHostPort(host)
		if err != nil { // without a port
			name, number = strings.Trim(host, "[]"), port
		}
		if addr := net.JoinHostPort(name, number); cluster.IsHostPort(addr) {
			all = append(all, addr)
			continue
		}
		return nil, errors.New("a host of the target is not HOST or HOST:PORT")
	}
	return all, nil
}

// readPath reads the name of the master, or the number of the database.
func (a *Address) readPath(path string) error {
	var err error
	switch {
	case a.Kind == cluster.Sentinel:
		a.Master = cmp.Or(path, defaultMaster)
	case path == "":
	case a.Kind == cluster.Sharded:
		err = errors.New("a Redis Cluster has no database but 0: remove the path of the target")
	default:
		if a.Database, err = strconv.Atoi(path); err != nil || a.Database < 0 {
			err = errors.New("the path of the target must be the number of a database, such as /1")
		}
	}
	return err
}

// readQuery reads tls and db, of Sentinel and cluster.
func (a *Address) readQuery(query url.Values) (err error) {
	for key := range query { // in any order: one unknown key is enough
		value := query.Get(key)
		switch {
		case key == "tls" && a.Kind != cluster.Single && a.Kind != cluster.Quorum:
			a.TLS, err = strconv.ParseBool(value)
		case key == "db" && a.Kind == cluster.Sentinel:
			a.Database, err = strconv.Atoi(value)
		default:
			return errors.New("the target has an unknown option: sentinel takes ?tls=true and ?db=N, cluster ?tls=true")
		}
		if err != nil || a.Database < 0 {
			return fmt.Errorf("option %s of the target has an invalid value", key)
		}
	}
	return nil
}
