package lock

import _ "embed" // the scripts are part of the program

//go:embed script/rw_state.lua
var rwStateSource string

//go:embed script/rw_acquire.lua
var rwAcquireSource string

//go:embed script/rw_release.lua
var rwReleaseSource string

//go:embed script/rw_force.lua
var rwForceSource string

//go:embed script/rw_inspect.lua
var rwInspectSource string

//go:embed script/rw_renew.lua
var rwRenewSource string

// rwScripts are those of readers-writer locks.
type rwScripts struct{ acquire, release, renew, force, inspect script }

func newRWStores(s *single) (readers, writers *rwStore) {
	scripts := &rwScripts{
		acquire: newScript(mintSource + rwStateSource + rwAcquireSource),
		release: newScript(rwStateSource + rwReleaseSource),
		renew:   newScript(rwRenewSource),
		force:   newScript(rwStateSource + rwForceSource),
		inspect: newScript(rwStateSource + rwInspectSource),
	}
	return &rwStore{s.node, scripts, s.tombstoneTTL, "r"}, &rwStore{s.node, scripts, s.tombstoneTTL, "w"}
}
