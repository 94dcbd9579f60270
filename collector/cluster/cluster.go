// Package cluster answers: how is this cluster reached?
//
// [Connect] is the only way to the API server. It owns what every request needs:
// reads are retried while the API server restarts, no client-side rate limit
// holds requests back, a request ends with its context, also while a credential plugin
// hangs, what a server sends is bounded by the memory that it occupies, in all clusters of the process together,
// and the time is the server's, not this machine's.
package cluster

import (
	"errors"
	"fmt"
	"time"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/gap"
)

// Cluster is the clients of one cluster. They may be used concurrently.
type Cluster struct {
	Kubernetes kubernetes.Interface
	OpenShift  configclient.Interface
	// Dynamic reads APIs without a typed client, such as MachineConfigPools.
	Dynamic dynamic.Interface
	// Metadata reads the metadata of objects, without their content.
	Metadata metadata.Interface

	config *rest.Config
	clock  *clock
	bounds *bounds
}

// Connect makes the clients of the cluster that config reaches; config is not
// changed. userAgent is sent with every request. No request is sent.
func Connect(config *rest.Config, userAgent string) (*Cluster, error) {
	return connect(config, userAgent, &clock{})
}

// ConnectAt is Connect for what has the state of a cluster at one time, such as an archive: Now is
// always that time.
func ConnectAt(config *rest.Config, userAgent string, at time.Time) (*Cluster, error) {
	return connect(config, userAgent, &clock{fixed: at})
}

func connect(config *rest.Config, userAgent string, by *clock) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.QPS = -1 // the API server's priority and fairness decides
	config.WarningHandlerWithContext = gap.Warnings{}
	bounds := &bounds{}
	if by.fixed.IsZero() { // an archive bounds its files
		config.Wrap(bounds.wrap)
	}
	config.Wrap(retry.Reads)
	c := &Cluster{config: rest.CopyConfig(config), clock: by, bounds: bounds}
	config.Wrap(c.clock.wrap)
	client, err := interruptible(config)
	if err != nil {
		return nil, fmt.Errorf("the configuration of the cluster cannot be used: %w", err)
	}
	var errs [4]error
	c.Kubernetes, errs[0] = kubernetes.NewForConfigAndClient(config, client)
	c.OpenShift, errs[1] = configclient.NewForConfigAndClient(config, client)
	c.Dynamic, errs[2] = dynamic.NewForConfigAndClient(config, client)
	c.Metadata, errs[3] = metadata.NewForConfigAndClient(config, client)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("the configuration of the cluster cannot be used: %w", err)
	}
	return c, nil
}

// Config is a copy of the configuration, for other servers of the cluster that accept the user's credentials.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Now is the time by the API server's clock, with an error of up to two seconds.
// Before the first response it is this machine's.
func (c *Cluster) Now() time.Time { return c.clock.now().UTC() }

// Fixed reports whether the state is of one time (an archive), so that waiting cannot change it.
func (c *Cluster) Fixed() bool { return !c.clock.fixed.IsZero() }
