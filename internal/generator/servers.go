package generator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/scenarios"
)

// On limits l to some topologies: kinds, or one for [OwnServers]. Without any, l is not limited.
func (l *Lock) On(topologies []string) (err error) {
	own := func(t string) bool { return t == cluster.None || strings.ContainsAny(t, "./") }
	if i := slices.IndexFunc(topologies, own); i >= 0 {
		if l.Servers, err = OwnServers(topologies[i]); err != nil {
			return err
		}
		if len(topologies) > 1 {
			return fmt.Errorf("a client speaks to one kind of server: leave out all but %s", topologies[i])
		}
		topologies = []string{l.Servers.Kind}
	}
	kinds := format.Texts(cluster.Topologies(), func(row cluster.TopologySpec) string { return row.Name })
	for _, kind := range topologies {
		switch {
		case !slices.Contains(kinds, kind):
			return fmt.Errorf("unknown topology %q%s", kind, nearest.Hint(kind, kinds))
		case !l.Runs(kind):
			return fmt.Errorf("lock %s does not run on topology %s", l.Name, kind)
		case kind == cluster.Command && l.Servers == nil:
			return fmt.Errorf("name the FILE of a scenario of topology %s, as chaos init writes it", kind)
		}
	}
	if len(topologies) > 0 {
		l.Kinds = topologies
	}
	return nil
}

// OwnServers are the servers of the user in the file of a scenario, or none.
func OwnServers(file string) (*cluster.Topology, error) {
	if file == cluster.None {
		return &cluster.Topology{Kind: file}, nil
	}
	s, err := scenarios.Load(file)
	switch {
	case err != nil:
		return nil, err
	case s.Topology.Kind != cluster.Command && s.Topology.Kind != cluster.None:
		return nil, fmt.Errorf("%s is for topology %s, which needs no file: a file describes servers of your own "+
			"(topology %s)", file, s.Topology.Kind, cluster.Command)
	}
	return &s.Topology, nil
}
