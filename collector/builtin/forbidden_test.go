package builtin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// TestForbidden examines each check as a user without any permission: none may pass by what it
// was not allowed to read.
func TestForbidden(t *testing.T) {
	limited := rest.CopyConfig(config)
	limited.Impersonate.UserName = "without-permissions"
	api, err := cluster.Connect(limited, "test")
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := update.Parse("4.18.1", "4.19.0")
	if err != nil {
		t.Fatal(err)
	}
	alerts := monitoring.New(func(context.Context) (*rest.Config, error) { return nil, errors.New("forbidden") }, monitoring.DefaultTimeout)
	subject := check.Subject{Cluster: snapshot.Of(api), Update: leaves, Now: time.Now()}
	for _, each := range builtin.Checks(scene.Judgement{Monitoring: alerts}) {
		t.Run(each.Name, func(t *testing.T) {
			found, err := each.Examine(t.Context(), subject)
			for _, f := range found {
				if f.Outcome == preflight.Pass {
					t.Errorf("passes: %s (error %v)", f.Message, err)
				}
			}
		})
	}
}
