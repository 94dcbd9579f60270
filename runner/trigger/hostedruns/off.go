package hostedruns

import (
	"context"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
)

// Off removes the policies of a switch that is off, while the manager leads, where there are no runs.
// What cannot be removed is tried again once a minute.
func Off(off *hostedguard.Switch, logger *slog.Logger) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		for {
			_, err := off.Apply(ctx, nil)
			if err == nil || ctx.Err() != nil {
				return nil //nolint:nilerr // it was tried until the end
			}
			logger.Warn("the admission policies of hosted clusters could not be removed", "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(Interval):
			}
		}
	})
}
