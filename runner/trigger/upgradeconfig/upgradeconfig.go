// Package upgradeconfig answers: which update has the managed-upgrade-operator scheduled in
// this cluster?
//
// [New] returns a [Reader] of the UpgradeConfigs, whose Scheduled returns the update. Package
// schedule interprets it.
package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

// listTimeout bounds the first list of UpgradeConfigs, which fails while their API is not
// served.
const listTimeout = 10 * time.Second

const upgradeConfigResource = "upgradeconfigs"

// upgradeConfigGroup is the API group of the managed-upgrade-operator (MUO).
func upgradeConfigGroup() schema.GroupVersion {
	return schema.GroupVersion{Group: "upgrade.managed.openshift.io", Version: "v1alpha1"}
}

func upgradeConfig() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(upgradeConfigGroup().WithKind("UpgradeConfig"))
	return object
}

// Needs are the permissions to read UpgradeConfigs.
func Needs() access.Needs {
	object := access.Request{Group: upgradeConfigGroup().Group, Resource: upgradeConfigResource}
	return access.Needs{Required: access.Verbs(object, "list", "watch")}
}

// Watch makes each event of a kind of objects that the predicate does not exclude reconcile.
type Watch func(object *unstructured.Unstructured, changes predicate.TypedPredicate[*unstructured.Unstructured]) error

// Reader reads the UpgradeConfigs, where MUO is installed. It is not used concurrently.
type Reader struct {
	cache  cache.Cache
	logger *slog.Logger
	// channels finds releases of other channels than the cluster's.
	channels *channels
	watch    Watch
	watched  bool
	// logged is the last violation that was logged.
	logged string
}

// New returns a Reader of the UpgradeConfigs of a cluster, which the cache reads.
func New(cluster *cluster.Cluster, caches cache.Cache, watch Watch, logger *slog.Logger) *Reader {
	return &Reader{cache: caches, logger: logger, channels: &channels{cluster: cluster, logger: logger}, watch: watch}
}

// Scheduled is the update that MUO starts; nil for none, and where its release is unknown,
// with the cause.
func (u *Reader) Scheduled(ctx context.Context, clusterVersion *configv1.ClusterVersion) (*schedule.Scheduled, *schedule.Invalid, error) {
	defined := &metav1.PartialObjectMetadata{}
	defined.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := u.cache.Get(ctx, client.ObjectKey{Name: upgradeConfigResource + "." + upgradeConfigGroup().Group}, defined)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !defined.DeletionTimestamp.IsZero():
		return nil, nil, u.unwatch(ctx)
	case err != nil:
		return nil, nil, fmt.Errorf("could not read the CustomResourceDefinition of UpgradeConfigs: %w", err)
	}
	configured, err := u.read(ctx)
	if err != nil || configured == nil {
		return nil, nil, err
	}
	found, err := schedule.Resolve(*configured, clusterVersion)
	if invalid, ok := errors.AsType[*schedule.Invalid](err); ok && invalid.Reason == schedule.OtherChannel {
		if configured.Desired.Image = u.channels.image(ctx, clusterVersion, configured.Desired.Channel,
			configured.Desired.Version); configured.Desired.Image != "" {
			found, err = schedule.Resolve(*configured, clusterVersion)
		}
	}
	if invalid, ok := errors.AsType[*schedule.Invalid](err); ok {
		u.log(invalid)
		return nil, invalid, nil
	}
	u.logged = ""
	return &found, nil, err
}

// log logs a violation once.
func (u *Reader) log(invalid *schedule.Invalid) {
	if text := invalid.Error(); text != u.logged {
		u.logged = text
		u.logger.Warn("the UpgradeConfig schedules no update that can be checked in advance", "name", schedule.Name, "reason", invalid.Reason,
			"cause", text)
	}
}

// read is the spec of the UpgradeConfig that MUO processes; nil if there is none.
func (u *Reader) read(ctx context.Context) (*schedule.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(upgradeConfigGroup().WithKind("UpgradeConfigList"))
	if err := u.cache.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("could not list the UpgradeConfigs: %w", err)
	}
	if !u.watched {
		changed := predicate.TypedGenerationChangedPredicate[*unstructured.Unstructured]{}
		if err := u.watch(upgradeConfig(), changed); err != nil {
			return nil, fmt.Errorf("could not watch the UpgradeConfigs: %w", err)
		}
		u.watched = true
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetNamespace(), b.GetNamespace()) })
	i := slices.IndexFunc(all.Items, func(object unstructured.Unstructured) bool { return object.GetName() == schedule.Name })
	if i < 0 {
		return nil, nil
	}
	var object struct {
		Spec schedule.Config `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Items[i].Object, &object); err != nil {
		return nil, fmt.Errorf("could not decode UpgradeConfig %q: %w", schedule.Name, err)
	}
	return &object.Spec, nil
}

func (u *Reader) unwatch(ctx context.Context) error {
	if !u.watched {
		return nil
	}
	u.watched = false
	return u.cache.RemoveInformer(ctx, upgradeConfig())
}

const (
	// channelTimeout bounds a request to the update service, since it delays everything else.
	channelTimeout = 5 * time.Second
	// channelPause is after which time a release that was not found is requested again.
	channelPause = 10 * time.Minute
)

// channels finds the image of a release in another channel than the cluster's, in the update
// service that CVO uses. It has the last answer. It is not used concurrently.
type channels struct {
	cluster *cluster.Cluster
	logger  *slog.Logger

	channel, version, found string
	asked                   time.Time
}

// image is empty for a release that the channel does not have, and while the update service
// cannot be reached.
func (c *channels) image(ctx context.Context, present *configv1.ClusterVersion, channel, version string) string {
	now := c.cluster.Now()
	if same := c.channel == channel && c.version == version; same && (c.found != "" || now.Sub(c.asked) < channelPause) {
		return c.found
	}
	ctx, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	transport := registry.Outbound(ctx, c.cluster)
	release, err := graphsource.InChannel(ctx, scene.Scene{Cluster: c.cluster, Version: present}, transport, channel, version)
	if err != nil {
		c.logger.Warn("the release of the scheduled update is unknown", "channel", channel, "version", version, "cause", err)
	}
	c.channel, c.version, c.found, c.asked = channel, version, release.Image, now
	return c.found
}
