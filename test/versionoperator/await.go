package versionoperator

import (
	"context"
	"fmt"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Await waits until ClusterVersion meets the condition, and returns it. The error has its
// last status.
func Await(ctx context.Context, config *rest.Config, timeout time.Duration,
	wanted func(*configv1.ClusterVersion) bool,
) (*configv1.ClusterVersion, error) {
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var last *configv1.ClusterVersion
	err = wait.PollUntilContextTimeout(ctx, interval/3, timeout, true, func(ctx context.Context) (bool, error) {
		last, err = openshift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
		return err == nil && wanted(last), nil
	})
	if err != nil && last != nil {
		status, _ := yaml.Marshal(last.Status)
		return nil, fmt.Errorf("%w; its status is\n%s", err, status)
	}
	return last, err
}

// AwaitSyncs waits until the operator has completed that many more syncs.
func (o *Operator) AwaitSyncs(tb testing.TB, count int64) {
	tb.Helper()
	until := o.Syncs.Load() + count
	err := wait.PollUntilContextTimeout(tb.Context(), interval, time.Minute, true, func(context.Context) (bool, error) {
		return o.Syncs.Load() >= until, nil
	})
	if err != nil {
		tb.Fatalf("CVO does not sync: %v", err)
	}
}
