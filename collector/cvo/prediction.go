package cvo

import "fmt"

// NotEvaluated is the reason of a Prediction whose Accepts is nil.
const NotEvaluated = "NotEvaluated"

// Prediction is what CVO would do.
type Prediction struct {
	// Accepts is nil when unknown.
	Accepts *bool
	// Reason is that of the condition of ClusterVersion that would report the
	// prediction: InvalidClusterVersion of Invalid; of ReleaseAccepted the step that
	// refuses (RetrievePayload, VerifyPayloadVersion, PreconditionChecks) or
	// PayloadLoaded. NoTarget, which is not a reason of CVO, means that CVO stays at
	// the present release and reports nothing. NotEvaluated means that Accepts is
	// nil.
	Reason string
	// Message is the cause, in CVO's own words where it has a message.
	Message string
}

func accepts(format string, args ...any) Prediction {
	return Prediction{Accepts: new(true), Reason: "PayloadLoaded", Message: fmt.Sprintf(format, args...)}
}

func refuses(reason, format string, args ...any) Prediction {
	return Prediction{Accepts: new(false), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Prediction {
	return Prediction{Reason: NotEvaluated, Message: fmt.Sprintf(format, args...)}
}
