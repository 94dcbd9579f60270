package gate

// What reads text that others wrote, for fuzzing.
var (
	MaxOpenShift = maxOpenShift
	KubeletMinor = kubeletMinor
	RemovedMinor = removedMinor
)
