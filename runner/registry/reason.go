package registry

import "github.com/openshift/update-preflight/collector/finding"

// The reasons for which a registry or its configuration in the cluster cannot be used.
var (
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "Reported when the name of an image cannot be parsed.",
		Cause:   "The pull spec is malformed.",
		Remedy:  "Name the image as REPOSITORY@sha256:DIGEST.",
	})
	ReasonRegistryNotAllowed = finding.NewReason("RegistryNotAllowed", finding.Explanation{
		Meaning: "Reported when the registry of an image is not among the cluster's allowed registries.",
		Cause:   "AllowedRegistries of image.config.openshift.io \"cluster\" does not list it.",
		Remedy:  "Allow the registry: oc edit image.config.openshift.io cluster.",
	})
	reasonRegistryUnauthorized = finding.NewReason("RegistryUnauthorized", finding.Explanation{
		Meaning: "Reported when a registry rejects the credentials.",
		Cause:   "The credential is missing, expired, or may not pull the image.",
		Remedy:  "Renew the entry of the registry in Secret openshift-config/pull-secret, or log in: podman login HOST.",
	})
	reasonCredentialHelperFailed = finding.NewReason("CredentialHelperFailed", finding.Explanation{
		Meaning: "Reported when a credential helper of this machine fails.",
		Cause:   "The program docker-credential-NAME is missing or failed.",
		Remedy:  "Fix the helper, or log in without it: podman login HOST.",
	})
	reasonRegistryUntrusted = finding.NewReason("RegistryUntrusted", finding.Explanation{
		Meaning: "Reported when the certificate of a registry is not trusted.",
		Cause:   "Its CA is not among those of the cluster.",
		Remedy:  "Add the CA to the ConfigMap named in spec.additionalTrustedCA: oc edit image.config.openshift.io cluster.",
	})
	ReasonRegistryUnreachable = finding.NewReason("RegistryUnreachable", finding.Explanation{
		Meaning: "Reported when a registry cannot be reached.",
		Cause:   "DNS, the network, the proxy or a firewall.",
		Remedy:  "Make the registry reachable from here, or mirror the release, then run the preflight again: oc adm release mirror.",
	})
	reasonRepositoryNotMirrored = finding.NewReason("RepositoryNotMirrored", finding.Explanation{
		Meaning: "Reported when the registry of an image cannot be reached, and no mirror set of the cluster has an entry " +
			"for its repository.",
		Cause:  "The mirror sets are for other repositories than that of the release.",
		Remedy: "Mirror the release, and add the entry to a mirror set: oc edit imagedigestmirrorset NAME.",
	})
	ReasonMirrorIncomplete = finding.NewReason("MirrorIncomplete", finding.Explanation{
		Meaning: "Reported when a mirror lacks an image, and the registry of the image cannot be reached.",
		Cause:   "The release was not mirrored, or not completely.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonRegistryRateLimited = finding.NewReason("RegistryRateLimited", finding.Explanation{
		Meaning: "Reported when a registry limits the rate of pulls.",
		Cause:   "The account pulled too often.",
		Remedy:  "Wait, or log in with another account: podman login HOST.",
	})
	reasonRegistryError = finding.NewReason("RegistryError", finding.Explanation{
		Meaning: "Reported when a registry responds with an error.",
		Cause:   "A failure of the registry.",
		Remedy:  "Run the preflight again; if the error persists, ask the operators of the registry.",
	})
	ReasonImageNotFound = finding.NewReason("ImageNotFound", finding.Explanation{
		Meaning: "Reported when no registry has the image.",
		Cause:   "The pull spec is wrong, or the image was not mirrored.",
		Remedy:  "Check the pull spec, and mirror the release: oc adm release mirror.",
	})
	ReasonRegistryBlocked = finding.NewReason("RegistryBlocked", finding.Explanation{
		Meaning: "Reported when the cluster pulls from no repository of the image.",
		Cause:   "BlockedRegistries of image.config.openshift.io \"cluster\", or a mirrorSourcePolicy of NeverContactSource.",
		Remedy:  "Mirror the image to an allowed registry, or change the policy: oc edit image.config.openshift.io cluster.",
	})
	reasonPullSecretUnreadable = finding.NewReason("PullSecretUnreadable", finding.Explanation{
		Meaning: "Reported when the cluster's pull secret cannot be used.",
		Cause:   "A permission is missing, or the Secret is malformed.",
		Remedy: "Obtain get on Secret openshift-config/pull-secret, or correct it: oc set data secret/pull-secret -n " +
			"openshift-config --from-file=.dockerconfigjson=FILE.",
	})
	reasonMirrorsUnreadable = finding.NewReason("MirrorsUnreadable", finding.Explanation{
		Meaning: "Reported when the cluster's mirror sets cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain list on the objects that the message names.",
	})
	reasonRegistrySourcesUnreadable = finding.NewReason("RegistrySourcesUnreadable", finding.Explanation{
		Meaning: "Reported when the cluster's registry configuration cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on image.config.openshift.io \"cluster\".",
	})
	reasonAdditionalTrustedCAMissing = finding.NewReason("AdditionalTrustedCAMissing", finding.Explanation{
		Meaning: "Reported when the ConfigMap with additional CAs does not exist.",
		Cause:   "spec.additionalTrustedCA names a ConfigMap that was deleted or mistyped.",
		Remedy:  "Create the ConfigMap, or correct the name: oc edit image.config.openshift.io cluster.",
	})
	reasonAdditionalTrustedCAUnreadable = finding.NewReason("AdditionalTrustedCAUnreadable", finding.Explanation{
		Meaning: "Reported when the ConfigMap with additional CAs cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on the ConfigMap that the message names.",
	})
	reasonAdditionalTrustedCAInvalid = finding.NewReason("AdditionalTrustedCAInvalid", finding.Explanation{
		Meaning: "Reported when an entry of the ConfigMap with additional CAs holds no certificate.",
		Cause:   "The entry is not PEM.",
		Remedy:  "Set the entry to the CA of the registry in PEM.",
	})
	reasonProxyUnreadable = finding.NewReason("ProxyUnreadable", finding.Explanation{
		Meaning: "Reported when the cluster's proxy cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on proxy.config.openshift.io \"cluster\".",
	})
	reasonTrustedBundleUnreadable = finding.NewReason("TrustedBundleUnreadable", finding.Explanation{
		Meaning: "Reported when the cluster's CA bundle cannot be read.",
		Cause:   "A permission is missing, or the API server did not respond.",
		Remedy:  "Obtain get on ConfigMap openshift-config-managed/trusted-ca-bundle.",
	})
	reasonAuthFileUnreadable = finding.NewReason("AuthFileUnreadable", finding.Explanation{
		Meaning: "Reported when a credentials file of the user cannot be used.",
		Cause:   "The file is not readable or malformed.",
		Remedy:  "Correct the file, or log in again: podman login HOST.",
	})
	reasonBlockedRegistryIgnored = finding.NewReason("BlockedRegistryIgnored", finding.Explanation{
		Meaning: "Reported when nodes ignore a blocked registry.",
		Cause:   "The current release was pulled from there, and has no mirror.",
		Remedy:  "Remove the entry, or configure a mirror of the release first.",
		Command: "oc edit image.config.openshift.io cluster",
	})
)
