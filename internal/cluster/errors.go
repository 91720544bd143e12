package cluster

import "errors"

// Errors that backends wrap. Test for them with [errors.Is].
var (
	// ErrEnvironment: this machine cannot do what was asked - a program is missing, an address or
	// port cannot be had. The message says what to do. The command line ends with code 69 on it.
	ErrEnvironment = errors.New("this machine cannot do that")

	// ErrOption: a server refuses an option of the topology. The message has its own words. The
	// command line ends with code 64 on it.
	ErrOption = errors.New("the server refuses an option of the topology")

	// ErrNoNode: the cluster has no node, Sentinel or link end of that name.
	ErrNoNode = errors.New("no such node")

	// ErrDown: the node does not run, so what was asked of it cannot be done.
	ErrDown = errors.New("node is down")
)
