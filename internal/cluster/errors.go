package cluster

import "errors"

// Errors that backends wrap. Test for them with [errors.Is].
var (
	// ErrEnvironment: this machine lacks something - a program is missing, an address or port is not available. The
	// message names the remedy. The command line exits with code 69.
	ErrEnvironment = errors.New("environment error")

	// ErrOption: a server rejects an option of the topology. The message has the server's text.
	// The command line exits with code 64.
	ErrOption = errors.New("the server rejects an option of the topology")

	// ErrNoNode: the cluster has no node, Sentinel or link end of that name.
	ErrNoNode = errors.New("no such node")

	// ErrDown: the node is not running.
	ErrDown = errors.New("node is down")
)
