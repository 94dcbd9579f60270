package openshift

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Mirror configures a mirror without TLS for the images of a registry, both given as
// host:port. The cluster must not be configured with mirrors or registries yet.
func Mirror(ctx context.Context, config *rest.Config, registry, mirror string) error {
	client, err := configclient.NewForConfig(config)
	if err != nil {
		return err
	}
	_, mirrored := client.ConfigV1().ImageDigestMirrorSets().Create(ctx, &configv1.ImageDigestMirrorSet{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: []configv1.ImageDigestMirrors{
			{Source: registry, Mirrors: []configv1.ImageMirror{configv1.ImageMirror(mirror)}},
		}},
	}, metav1.CreateOptions{})
	_, permitted := client.ConfigV1().Images().Create(ctx, &configv1.Image{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec:       configv1.ImageSpec{RegistrySources: configv1.RegistrySources{InsecureRegistries: []string{mirror}}},
	}, metav1.CreateOptions{})
	if err := errors.Join(mirrored, permitted); err != nil {
		return fmt.Errorf("could not configure the mirror %q of %q: %w", mirror, registry, err)
	}
	return nil
}
