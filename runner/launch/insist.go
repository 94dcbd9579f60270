package launch

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// retryInterval is the time between two tries of a request.
const retryInterval = time.Second

// errVanished means that an object was in the way, and has just gone.
var errVanished = errors.New("there was one of that name, which has just gone")

// insist makes a request again, until ctx is done, while the API server cannot
// be reached or has no time: a preflight is run when API servers restart.
func insist(ctx context.Context, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		return !transient(last), nil
	})
	if last != nil {
		return last
	}
	return err
}

// transient is true for the errors of an API server that restarts, is cut off
// or is overloaded. A request that is lost may have been served; then the next
// one finds the object and adopts it.
func transient(err error) bool {
	switch {
	case errors.Is(err, errVanished):
		return true
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err):
		return true
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err),
		utilnet.IsHTTP2ConnectionLost(err), utilnet.IsTimeout(err):
		return true
	}
	// An API server breaks a request off that is not done after a minute, such as
	// one to delete thousands (k8s.io/apiserver pkg/server/filters/timeout.go).
	broken, ok := errors.AsType[http2.StreamError](err)
	return ok && broken.Code == http2.ErrCodeInternal
}
