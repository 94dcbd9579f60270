package gate

// The parsers of external text, for fuzzing.
var (
	MaxOpenShift = maxOpenShift
	KubeletMinor = kubeletMinor
)
