package refs

const (
	None   = int32(-1)
	AnyKey = int32(-1)
)
