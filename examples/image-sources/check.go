package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// component is an image of the target. Its repository contains the images of all
// components.
type component struct{ image string }

// pullable checks the repositories of the release image and of the components.
func (c component) pullable(ctx context.Context, t *preflight.T) error {
	client, err := connect()
	if err != nil {
		return err
	}
	config, errConfig := client.Images().Get(ctx, "cluster", metav1.GetOptions{})
	sets, errSets := client.ImageDigestMirrorSets().List(ctx, metav1.ListOptions{})
	if err := cmp.Or(errConfig, errSets); err != nil {
		return fmt.Errorf("cannot read the image configuration: %w", err)
	}
	for _, image := range []string{t.Update().Image, c.image} {
		repository, _, ok := strings.Cut(image, "@")
		if !ok {
			return fmt.Errorf("%q: want an image of the target by digest", image)
		}
		checkRepository(t, config.Spec.RegistrySources, repository, sourcesOf(repository, sets.Items))
	}
	return nil
}

// checkRepository fails if the repository is not allowed or all of its sources are
// blocked.
func checkRepository(t *preflight.T, rules configv1.RegistrySources, repository string, sources []string) {
	within := func(scopes []string, name string) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return covered(name, scope) > 0 })
	}
	usable := func(source string) bool { return !within(rules.BlockedRegistries, source) }
	t.Evidence(repository, "pulled from "+strings.Join(sources, ", "))
	if len(rules.AllowedRegistries) > 0 && !within(rules.AllowedRegistries, repository) {
		t.Reason("NotPullable")
		t.Failf("%s is not in spec.registrySources.allowedRegistries", repository)
		t.Remedyf("Allow the repository.")
		t.Commandf(`oc patch image.config.openshift.io cluster --type=json -p '[{"op":"add","path":"/spec/registrySources/allowedRegistries/-","value":%q}]'`, repository)
	}
	if !slices.ContainsFunc(sources, usable) {
		t.Reason("NotPullable")
		t.Failf("spec.registrySources.blockedRegistries contains %s and all of its mirrors", repository)
		t.Remedyf("Unblock a source of %s, or add a mirror in an ImageDigestMirrorSet.", repository)
		t.Commandf("oc edit image.config.openshift.io cluster")
	}
}

// sourcesOf returns the repositories from which nodes pull: the mirrors of the longest
// source that covers the repository, and the repository itself unless the policy is
// NeverContactSource.
func sourcesOf(repository string, sets []configv1.ImageDigestMirrorSet) []string {
	longest, sources, self := 0, []string{}, []string{repository}
	for _, set := range sets {
		for _, m := range set.Spec.ImageDigestMirrors {
			switch length := covered(repository, m.Source); {
			case length == 0 || length < longest:
				continue
			case length > longest:
				longest, sources, self = length, nil, []string{repository}
			}
			for _, mirror := range m.Mirrors {
				sources = append(sources, string(mirror)+repository[longest:])
			}
			if m.MirrorSourcePolicy == configv1.NeverContactSource {
				self = nil
			}
		}
	}
	return append(sources, self...)
}

// covered returns the length of the prefix of name that scope covers, as specified in
// containers-registries.conf(5); 0 if it covers none.
func covered(name, scope string) int {
	host, _, _ := strings.Cut(name, "/")
	bare, _, _ := strings.Cut(host, ":")
	switch {
	case name == scope || strings.HasPrefix(name, scope+"/"):
		return len(scope)
	case strings.HasPrefix(scope, "*.") && strings.HasSuffix(bare, scope[1:]):
		return len(host)
	}
	return 0
}

// connect uses the same configuration as oc; in a pod, the configuration of the pod.
func connect() (configclient.ConfigV1Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot load the configuration of the cluster: %w", err)
	}
	return configclient.NewForConfig(config)
}
