package engine

// Snapshots are not simulated, except that one may fail: then the server refuses writes, as Redis does.

// maxFileName is the longest name of a file (Linux: NAME_MAX). A snapshot with a longer one cannot be written.
const maxFileName = 255

const errDisk = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
	"Commands that may modify the data set are disabled, because this instance is configured to report errors during " +
	"writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). " +
	"Please check the Redis logs for details about the RDB error."

// cmdBgsave is BGSAVE. Redis replies before the snapshot has failed; here it has failed at once.
func cmdBgsave(c *Conn, _ [][]byte) {
	c.FailIf(len(c.s.config["dbfilename"]) <= maxFileName, "ERR snapshots are not simulated")
	c.s.saveFailed = true
	c.WriteStatus("Background saving started")
}

// refusesWrites reports whether the last snapshot failed and clients must not write for that reason
// (writeCommandsDeniedByDiskError).
func (s *Server) refusesWrites() bool {
	return s.saveFailed && s.config["save"] != "" && !s.replica && !s.applying
}

// notSaved is the error if a command of a client is refused because the last snapshot failed, or "".
func (c *Conn) notSaved(spec *Spec, args [][]byte) string {
	if !c.s.refusesWrites() {
		return ""
	}
	sc := c.flaggedScript(spec, args)
	if c.FlagsOf(spec)&Write != 0 || spec.Name == "ping" || sc != nil && !sc.readOnly {
		return errDisk
	}
	return ""
}
