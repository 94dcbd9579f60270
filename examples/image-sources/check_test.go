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

// The repositories of the target, and an image of the second. That of the first
// is what the stage asks about.
const (
	releases   = "quay.io/openshift-release-dev/ocp-release"
	components = "quay.io/openshift-release-dev/ocp-v4.0-art-dev"
	digest     = "@sha256:89abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567"
)

// image is the configuration with those registrySources, in YAML's flow style.
func image(registrySources string) string {
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: Image, metadata: {name: cluster}, spec: {registrySources: {%s}}}\n", registrySources)
}

// mirrors is a set of the mirrors of source.
func mirrors(name, source, policy string, mirrors ...string) string {
	return fmt.Sprintf("---\n{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: %s}, spec: {imageDigestMirrors: [{source: %q, mirrors: [%s], mirrorSourcePolicy: %s}]}}\n",
		name, source, strings.Join(mirrors, ", "), policy)
}

func refused(remedy string, says ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Fail, Reason: "NotPullable", Says: says, Remedies: []string{remedy}}
}

func unknown(says ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: says}
}

func TestImageSources(t *testing.T) {
	stage := checktest.New(t, local, "openshift-config-operator", "image-sources-preflight")

	const (
		fallBack, never = "AllowContactingSource", "NeverContactSource"
		edit            = "oc edit image.config.openshift.io cluster"
	)
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	nowhere := func(repository string) checktest.Want {
		return refused(edit, "nodes have nowhere to pull "+repository+" from: spec.registrySources.blockedRegistries has it and all of its mirrors")
	}
	for name, tc := range map[string]struct {
		reason    string
		state     string
		component string
		ask       func(*testing.T, ...string) checktest.Answer
		want      checktest.Want
		// sources is where the image of a component comes from.
		sources string
	}{
		"NoSettings": {
			reason:  "without settings, images come from where they are",
			state:   image(""),
			want:    pass,
			sources: "pulled from " + components,
		},
		"OthersBlocked": {
			reason: "what is blocked is other registries; a name that begins alike is another one's",
			state:  image("blockedRegistries: [docker.io, quay.io/openshift-release-dev/ocp, quay.example.com]"),
			want:   pass,
		},
		"RegistryBlocked": {
			reason: "a registry that is blocked serves neither",
			state:  image("blockedRegistries: [quay.io]"),
			want:   refused(edit, "nowhere to pull "+releases+" from", "nowhere to pull "+components+" from"),
		},
		"DomainBlocked": {
			reason:    "so is one whose domain is, whatever its port",
			state:     image(`blockedRegistries: ["*.example.com"]`),
			component: "registry.eu.example.com:5000/ocp",
			want:      nowhere("registry.eu.example.com:5000/ocp"),
		},
		"DomainItself": {
			reason:    "a wildcard is of the subdomains",
			state:     image(`blockedRegistries: ["*.example.com"]`),
			component: "example.com/ocp",
			want:      pass,
		},
		"NamespaceAllowed": {
			reason: "a list of what is allowed may name a namespace",
			state:  image("allowedRegistries: [registry.redhat.io, quay.io/openshift-release-dev]"),
			want:   pass,
		},
		"ComponentsForgotten": {
			reason: "the incident: the administrator allowed the release image, and not those that it is made of",
			state:  image("allowedRegistries: [" + releases + "]"),
			want: refused(`'[{"op":"add","path":"/spec/registrySources/allowedRegistries/-","value":"`+components+`"}]'`,
				"nodes may not use "+components+": it is not in spec.registrySources.allowedRegistries"),
		},
		"Mirrored": {
			reason: "a disconnected cluster blocks the source and has a mirror",
			state: image("blockedRegistries: [quay.io]") +
				mirrors("all", "quay.io/openshift-release-dev", never, "registry.local:5000/ocp"),
			want:    pass,
			sources: "pulled from registry.local:5000/ocp/ocp-v4.0-art-dev",
		},
		"MirrorOfTheOther": {
			reason: "a mirror of the one repository is none of the other",
			state:  image("blockedRegistries: [quay.io]") + mirrors("releases", releases, fallBack, "registry.local:5000/ocp/release"),
			want:   nowhere(components),
		},
		"MirrorBlocked": {
			reason: "a mirror that is blocked itself is of no use, and nobody may go to the source",
			state: image("blockedRegistries: [registry.local:5000]") +
				mirrors("all", "quay.io/openshift-release-dev", never, "registry.local:5000/ocp"),
			want: nowhere(components),
		},
		"MirrorBlockedSourceOpen": {
			reason: "unless one may",
			state: image("blockedRegistries: [registry.local:5000]") +
				mirrors("all", "quay.io/openshift-release-dev", fallBack, "registry.local:5000/ocp"),
			want:    pass,
			sources: "pulled from registry.local:5000/ocp/ocp-v4.0-art-dev, " + components,
		},
		"LongestSource": {
			reason: "of two sources the longer one counts, and the other one's mirrors do not",
			state: image("") + mirrors("a-all", "quay.io", never, "everything.local") +
				mirrors("b-components", components, fallBack, "components.local/ocp") + mirrors("c-all", "quay.io/openshift-release-dev", never, "ocp.local"),
			want:    pass,
			sources: "pulled from components.local/ocp, " + components,
		},
		"TwoSets": {
			reason: "sets of the same source add up",
			state: image("blockedRegistries: [first.local]") +
				mirrors("a", components, fallBack, "first.local/ocp") + mirrors("b", components, fallBack, "second.local/ocp"),
			want:    pass,
			sources: "pulled from first.local/ocp, second.local/ocp, " + components,
		},
		"NoDigest": {
			reason:    "an image by tag is not what a release has",
			state:     image(""),
			component: "quay.io/openshift/origin-cluster-config-operator:latest#",
			want:      unknown("is not an image of the target by digest"),
		},
		"NoConfiguration": {
			reason: "a cluster without the configuration is not a pass",
			want:   unknown(`cannot read where images come from: images.config.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want:   unknown(`images.config.openshift.io "cluster" is forbidden`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, tc.state)
			ask, pullSpec := stage.Ask, components+digest
			if tc.ask != nil {
				ask = tc.ask
			}
			if tc.component != "" {
				pullSpec = tc.component + digest
			}
			answer := ask(t, "COMPONENT_IMAGE="+strings.TrimSuffix(pullSpec, "#"+digest))
			answer.Expect(t, tc.reason, "ImageSources", tc.want)
			if got := answer.Findings["ImageSources"].Evidence[components]; tc.sources != "" && got != tc.sources {
				t.Errorf("%s: evidence is %q, want %q", tc.reason, got, tc.sources)
			}
		})
	}
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-config-operator", "image-sources-preflight").ExpectJob(t)
}
