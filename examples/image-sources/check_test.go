package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// The repositories of the target: of the release image, which checktest passes to the
// check, and of the components, with the digest of a component.
const (
	releases   = "quay.io/openshift-release-dev/ocp-release"
	components = "quay.io/openshift-release-dev/ocp-v4.0-art-dev"
	digest     = "@sha256:89abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567"
)

// image returns the configuration with registrySources in the flow style of YAML.
func image(registrySources string) string {
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: Image, metadata: {name: cluster}, spec: {registrySources: {%s}}}\n",
		registrySources)
}

// mirrors returns an ImageDigestMirrorSet with the mirrors of source.
func mirrors(name, source, policy string, mirrors ...string) string {
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: %s}, spec: "+
		"{imageDigestMirrors: [{source: %q, mirrors: [%s], mirrorSourcePolicy: %s}]}}\n",
		name, source, strings.Join(mirrors, ", "), policy)
}

func notPullable(remedy string, messages ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Fail, Reason: "NotPullable", Messages: messages, Remedies: []string{remedy}}
}

func unknown(messages ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
}

func TestImageSources(t *testing.T) {
	env := checktest.New(t, local, "openshift-config-operator", "image-sources-preflight")

	const (
		fallBack, never = "AllowContactingSource", "NeverContactSource"
		edit            = "oc edit image.config.openshift.io cluster"
	)
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	blocked := func(repository string) checktest.Want {
		return notPullable(edit, "spec.registrySources.blockedRegistries contains "+repository+" and all of its mirrors")
	}
	for name, tc := range map[string]struct {
		reason    string
		state     string
		component string
		run       func(*testing.T, ...string) checktest.Report
		want      checktest.Want
		// sources is the expected evidence about the repository of the components.
		sources string
	}{
		"NoSettings": {
			reason:  "without settings, images are pulled from their repositories",
			state:   image(""),
			want:    pass,
			sources: "pulled from " + components,
		},
		"OthersBlocked": {
			reason: "other blocked registries are ignored, including repositories with the same prefix",
			state:  image("blockedRegistries: [docker.io, quay.io/openshift-release-dev/ocp, quay.example.com]"),
			want:   pass,
		},
		"RegistryBlocked": {
			reason: "a blocked registry blocks both repositories",
			state:  image("blockedRegistries: [quay.io]"),
			want:   notPullable(edit, "blockedRegistries contains "+releases+" and", "blockedRegistries contains "+components+" and"),
		},
		"DomainBlocked": {
			reason:    "a wildcard blocks all subdomains with any port",
			state:     image(`blockedRegistries: ["*.example.com"]`),
			component: "registry.eu.example.com:5000/ocp",
			want:      blocked("registry.eu.example.com:5000/ocp"),
		},
		"DomainItself": {
			reason:    "a wildcard does not block the domain itself",
			state:     image(`blockedRegistries: ["*.example.com"]`),
			component: "example.com/ocp",
			want:      pass,
		},
		"NamespaceAllowed": {
			reason: "allowedRegistries may contain a namespace",
			state:  image("allowedRegistries: [registry.redhat.io, quay.io/openshift-release-dev]"),
			want:   pass,
		},
		"ComponentsForgotten": {
			reason: "the incident: the administrator allowed the release image but not the components",
			state:  image("allowedRegistries: [" + releases + "]"),
			want: notPullable(`'[{"op":"add","path":"/spec/registrySources/allowedRegistries/-","value":"`+components+`"}]'`,
				components+" is not in spec.registrySources.allowedRegistries"),
		},
		"Mirrored": {
			reason: "a disconnected cluster blocks the source and has a mirror",
			state: image("blockedRegistries: [quay.io]") +
				mirrors("all", "quay.io/openshift-release-dev", never, "registry.local:5000/ocp"),
			want:    pass,
			sources: "pulled from registry.local:5000/ocp/ocp-v4.0-art-dev",
		},
		"MirrorOfTheOther": {
			reason: "a mirror of one repository is not a mirror of the other",
			state:  image("blockedRegistries: [quay.io]") + mirrors("releases", releases, fallBack, "registry.local:5000/ocp/release"),
			want:   blocked(components),
		},
		"MirrorBlocked": {
			reason: "the mirror is blocked and the source must not be contacted",
			state: image("blockedRegistries: [registry.local:5000]") +
				mirrors("all", "quay.io/openshift-release-dev", never, "registry.local:5000/ocp"),
			want: blocked(components),
		},
		"MirrorBlockedSourceOpen": {
			reason: "the mirror is blocked but the source may be contacted",
			state: image("blockedRegistries: [registry.local:5000]") +
				mirrors("all", "quay.io/openshift-release-dev", fallBack, "registry.local:5000/ocp"),
			want:    pass,
			sources: "pulled from registry.local:5000/ocp/ocp-v4.0-art-dev, " + components,
		},
		"LongestSource": {
			reason: "only the mirrors of the longest matching source count",
			state: image("") + mirrors("a-all", "quay.io", never, "everything.local") +
				mirrors("b-components", components, fallBack, "components.local/ocp") + mirrors("c-all", "quay.io/openshift-release-dev", never,
				"ocp.local"),
			want:    pass,
			sources: "pulled from components.local/ocp, " + components,
		},
		"TwoSets": {
			reason: "mirrors of several sets with the same source are combined",
			state: image("blockedRegistries: [first.local]") +
				mirrors("a", components, fallBack, "first.local/ocp") + mirrors("b", components, fallBack, "second.local/ocp"),
			want:    pass,
			sources: "pulled from first.local/ocp, second.local/ocp, " + components,
		},
		"NoDigest": {
			reason:    "images of a release have digests",
			state:     image(""),
			component: "quay.io/openshift/origin-cluster-config-operator:latest#",
			want:      unknown("want an image of the target by digest"),
		},
		"NoConfiguration": {
			reason: "a missing configuration is not a pass",
			want:   unknown(`cannot read the image configuration: images.config.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown(`images.config.openshift.io "cluster" is forbidden`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run, pullSpec := env.Run, components+digest
			if tc.run != nil {
				run = tc.run
			}
			if tc.component != "" {
				pullSpec = tc.component + digest
			}
			report := run(t, "COMPONENT_IMAGE="+strings.TrimSuffix(pullSpec, "#"+digest))
			report.Expect(t, tc.reason, "ImageSources", tc.want)
			if got := report.Findings["ImageSources"].Evidence[components]; tc.sources != "" && got != tc.sources {
				t.Errorf("%s: evidence is %q, want %q", tc.reason, got, tc.sources)
			}
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, image("blockedRegistries: [quay.io]"))
		env.ExpectOutput(t, "COMPONENT_IMAGE="+components+digest)
	})
}

func TestManifests(t *testing.T) {
	env := checktest.New(t, local, "openshift-config-operator", "image-sources-preflight")
	env.ExpectJob(t)
	env.ExpectRoles(t)
}
