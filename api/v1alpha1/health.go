package v1alpha1

// Health says what is measured, how, and what its limits are.
//
// +kubebuilder:validation:XValidation:rule="(has(self.disabled) && self.disabled) || has(self.errorRate) || has(self.latency) || (has(self.checks) && size(self.checks) > 0)",message="health has no check, so nothing could ever be told about the canary: set health.errorRate, health.latency or health.checks, or say health.disabled: true to run without any check"
// +kubebuilder:validation:XValidation:rule="has(self.preset) || (!has(self.errorRate) && !has(self.latency))",message="health.preset is required by health.errorRate and health.latency: name the gateway whose metrics are to be read, such as Traefik"
// +kubebuilder:validation:XValidation:rule="!has(self.require) || self.require != 'NotWorse' || has(self.errorRate) || has(self.latency)",message="health.require NotWorse compares requests with those of stable: set health.errorRate or health.latency, or require NoBreach"
// +kubebuilder:validation:XValidation:rule="!has(self.require) || self.require != 'NotWorse' || !has(self.errorRate) || has(self.errorRate.maxAboveStablePercent) || !has(self.errorRate.maxPercent) || (type(self.errorRate.maxPercent) == int ? self.errorRate.maxPercent > 0 : !self.errorRate.maxPercent.matches('^0+([.]0*)?$'))",message="health.require NotWorse could never be proven within errorRate.maxPercent 0: give a margin in errorRate.maxAboveStablePercent, such as \"0.1\""
// +kubebuilder:validation:XValidation:rule="!has(self.onNoData) || self.onNoData != 'Rollback' || !has(self.noDataTimeout) || !has(self.window) || !has(self.sampleDelay) || !self.noDataTimeout.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.sampleDelay.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.noDataTimeout).getMilliseconds() >= 2 * duration(self.window).getMilliseconds() + duration(self.sampleDelay).getMilliseconds()",message="health.noDataTimeout is too short for a first verdict, so that every canary would be rolled back: it must be at least twice health.window plus health.sampleDelay"
// +kubebuilder:validation:XValidation:rule="!has(self.window) || !has(self.interval) || !self.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.interval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.interval).getMilliseconds() < 1 || (duration(self.window).getMilliseconds() % duration(self.interval).getMilliseconds()) == 0",message="health.window must be a whole multiple of health.interval, such as a window of 1m and an interval of 15s"
type Health struct {
	// prometheus is where the metrics are asked for. Default: the address that the
	// controller was started with.
	// +optional
	Prometheus *Prometheus `json:"prometheus,omitempty"`

	// preset names the metrics that requests are counted by: Traefik, Istio and Linkerd
	// read those of the gateway or mesh, Pods those that the two Services' own pods
	// expose. Without a preset only checks are asked, and requests cannot be counted.
	// +optional
	Preset Preset `json:"preset,omitempty"`

	// window is the span of time that one evaluation covers: from 1s to 1h, a whole
	// multiple of interval. Default: 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="health.window must be a duration from 1s to 1h, such as 1m"
	Window Duration `json:"window,omitempty"`

	// interval is the time between two evaluations: from 1s to 1h. Default: 15s.
	// +optional
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="health.interval must be a duration from 1s to 1h, such as 15s"
	Interval Duration `json:"interval,omitempty"`

	// sampleDelay is how long a request takes to show up in the metrics: the scrape
	// interval plus the gateway's own lag, from 0s to 10m. Evidence for a share
	// starts that long after its confirmation; a sample older than window plus
	// sampleDelay is stale. Default: 15s.
	// +optional
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('10m')",message="health.sampleDelay must be a duration from 0s to 10m, such as 15s"
	SampleDelay Duration `json:"sampleDelay,omitempty"`

	// minRequests is the number of canary requests that a stage needs before it may
	// end: 1 to 1000000000. Default: 100. It needs a preset.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MinRequests int64 `json:"minRequests,omitempty"`

	// minRampRequests is the number of canary requests that a ramp step within a
	// stage needs: 1 to 1000000000. Default: 20. It needs a preset.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MinRampRequests int64 `json:"minRampRequests,omitempty"`

	// errorRate limits the part of the canary's requests that fail.
	// +optional
	ErrorRate *ErrorRate `json:"errorRate,omitempty"`

	// latency limits how slow the canary's responses may be.
	// +optional
	Latency *Latency `json:"latency,omitempty"`

	// checks lists up to 20 queries of your own with their limits.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Checks []Check `json:"checks,omitempty"`

	// degradedBelow is the health score under which the canary is degraded: from 0.2
	// to 1. The score is 1, less errorRate.penalty times the error rate, less
	// latency.penalty times the part by which the response time is above its target.
	// A degraded canary's share is scaled back by the score. Default: 0.9.
	// +optional
	// +kubebuilder:default="0.9"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self == 1 : (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) >= 0.2 && double(self) <= 1.0))",message="health.degradedBelow must be from 0.2, the lowest score, to 1, such as \"0.9\""
	DegradedBelow Decimal `json:"degradedBelow,omitempty"`

	// confidence is how sure bad news must be, in percent: from 80 to "99.9". A limit is
	// exceeded only where so much of the doubt is gone, and over a whole attempt a
	// canary that is no worse than stable is called worse with a chance of at most the
	// rest. Default: 95.
	// +optional
	// +kubebuilder:default=95
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 80 && self <= 99 : (!self.matches('^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$') || (double(self) >= 80.0 && double(self) <= 99.9))",message="health.confidence must be from 80 to \"99.9\" percent, such as 95"
	Confidence Percent `json:"confidence,omitempty"`

	// require says what a stage needs before it may end. NoBreach: every check passes
	// on minRequests. NotWorse: besides, the canary is proven not to be worse than
	// stable, by more than errorRate.maxAboveStablePercent (or, without it, maxPercent)
	// of failed requests, and by more than the part of slow ones that
	// latency.percentile leaves. Default: NoBreach.
	// +optional
	// +kubebuilder:default=NoBreach
	Require Requirement `json:"require,omitempty"`

	// onNoData says what happens when no verdict can be given for noDataTimeout,
	// because metrics are missing or requests too few: Hold the share, or Rollback.
	// Default: Hold.
	// +optional
	// +kubebuilder:default=Hold
	OnNoData NoDataAction `json:"onNoData,omitempty"`

	// noDataTimeout is how long there may be no verdict before onNoData is acted on:
	// from 1s to 720h. Default: 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="health.noDataTimeout must be a duration from 1s to 720h, such as 1h"
	NoDataTimeout Duration `json:"noDataTimeout,omitempty"`

	// disabled runs the plan by time alone, without any check.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// Prometheus is a server that speaks the Prometheus HTTP API.
//
// The rule is one of the whole, since a rule of the address alone would repeat a
// password that must not be in it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || !has(self.address) || !self.address.startsWith('http:')",message="health.prometheus.tls is for https: give an address that begins with https://, or remove tls"
// +kubebuilder:validation:XValidation:rule="!has(self.bearerToken) || !has(self.basicAuth)",message="health.prometheus.bearerToken and basicAuth exclude each other: remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.address) || size(self.address) == 0 || (self.address.matches('^https?://[^@?#]+$') && isURL(self.address) && size(url(self.address).getHostname()) > 0)",fieldPath=".address",message="health.prometheus.address must be an http or https URL without user name, password or query, such as http://prometheus.monitoring:9090"
type Prometheus struct {
	// address is the server's base URL, such as http://prometheus.monitoring:9090,
	// without a user name or password.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Address string `json:"address,omitempty"`

	// bearerToken is sent as "Authorization: Bearer". It excludes basicAuth.
	// +optional
	BearerToken *SecretKeyReference `json:"bearerToken,omitempty"`

	// basicAuth is sent as "Authorization: Basic". It excludes bearerToken.
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`

	// headers are sent with every request, such as the tenant of a server that keeps
	// several apart: up to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Headers []Header `json:"headers,omitempty"`

	// tls says how an https server is trusted, and how it can trust the controller.
	// Default: the certificate authorities of the controller's image are trusted.
	// +optional
	TLS *TLS `json:"tls,omitempty"`
}

// SecretKeyReference names a key of a Secret in the rollout's own namespace. The
// controller reads it again when it changes.
//
// +kubebuilder:validation:XValidation:rule="self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",fieldPath=".name",message="must be the name of a Secret in the rollout's own namespace: lower-case letters, digits, '-' and '.'"
// +kubebuilder:validation:XValidation:rule="self.key.matches('^[-._a-zA-Z0-9]+$')",fieldPath=".key",message="must be a key of the Secret: letters, digits, '-', '_' and '.'"
type SecretKeyReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key within the Secret's data.
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// BasicAuth is a user name and a password.
type BasicAuth struct {
	// username is where the user name is kept.
	Username SecretKeyReference `json:"username"`

	// password is where the password is kept.
	Password SecretKeyReference `json:"password"`
}

// Header is a header of HTTP requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueFrom)",message="a header needs either value or valueFrom"
type Header struct {
	// name of the header, such as X-Scope-OrgID.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="the name of a header must be letters, digits and '-', such as X-Scope-OrgID"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['authorization', 'proxy-authorization', 'host', 'content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'accept-encoding', 'cookie', 'expect', 'range'])",message="this header cannot be set here: credentials belong into bearerToken or basicAuth, and the others are the client's own"
	Name string `json:"name"`

	// value of the header. Anybody who may read the rollout can read it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]([ -~]*[!-~])?$')",message="the value of a header must be printable ASCII without blanks at its ends"
	Value string `json:"value,omitempty"`

	// valueFrom is where the value is kept, if it is secret.
	// +optional
	ValueFrom *SecretKeyReference `json:"valueFrom,omitempty"`
}

// TLS says how an https server is trusted.
//
// +kubebuilder:validation:XValidation:rule="has(self.certificate) == has(self.key)",message="a client certificate needs its key: set tls.certificate and tls.key, or neither"
// +kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.ca))",message="tls.insecureSkipVerify trusts every server, so tls.ca would mean nothing: remove one of them"
type TLS struct {
	// ca is where the certificate authorities are kept that the server's certificate
	// must come from, in PEM. Only these are trusted then.
	// +optional
	CA *SecretKeyReference `json:"ca,omitempty"`

	// certificate is where the client certificate is kept, in PEM.
	// +optional
	Certificate *SecretKeyReference `json:"certificate,omitempty"`

	// key is where the client certificate's private key is kept, in PEM.
	// +optional
	Key *SecretKeyReference `json:"key,omitempty"`

	// serverName is the name that the server's certificate must have. Default: the
	// host of the address.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$')",message="tls.serverName must be a host name, such as prometheus.example.com"
	ServerName string `json:"serverName,omitempty"`

	// insecureSkipVerify takes any certificate, so that whoever sits between the
	// controller and the server can read the credentials and forge the evidence.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// Requirement says what a stage needs before it may end.
// +kubebuilder:validation:Enum=NoBreach;NotWorse
type Requirement string

const (
	// RequireNoBreach needs every check to pass on enough requests.
	RequireNoBreach Requirement = "NoBreach"
	// RequireNotWorse also needs the proof that the canary is not worse than stable.
	RequireNotWorse Requirement = "NotWorse"
)

// NoDataAction says what happens when there is no verdict for long.
// +kubebuilder:validation:Enum=Hold;Rollback
type NoDataAction string

const (
	// NoDataHold holds the share.
	NoDataHold NoDataAction = "Hold"
	// NoDataRollback gives stable all traffic.
	NoDataRollback NoDataAction = "Rollback"
)

// Preset names a set of metrics.
// +kubebuilder:validation:Enum=Traefik;Istio;Linkerd;Pods
type Preset string

const (
	// PresetTraefik reads Traefik's per-service metrics. Traefik must run with
	// --metrics.prometheus.addserviceslabels=true.
	PresetTraefik Preset = "Traefik"
	// PresetIstio reads Istio's standard metrics, as the callers' proxies report them.
	PresetIstio Preset = "Istio"
	// PresetLinkerd reads the outbound metrics of Linkerd's proxies.
	PresetLinkerd Preset = "Linkerd"
	// PresetPods reads the HTTP server metrics that the pods of the two Services expose
	// themselves.
	PresetPods Preset = "Pods"
)

// ErrorRate limits the part of requests that fail.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxPercent)",message="maxPercent is required: give the highest error rate in percent that is still acceptable, such as 1 or \"0.5\""
// +kubebuilder:validation:XValidation:rule="!has(self.targetPercent) || !has(self.maxPercent) || (type(self.targetPercent) == string && !self.targetPercent.matches('^[0-9]{1,3}([.][0-9]{1,2})?$')) || (type(self.maxPercent) == string && !self.maxPercent.matches('^[0-9]{1,3}([.][0-9]{1,2})?$')) || double(self.targetPercent) <= double(self.maxPercent)",message="errorRate.targetPercent is above errorRate.maxPercent: the target must be the lower of the two"
type ErrorRate struct {
	// maxPercent is the highest acceptable error rate, in percent of requests.
	// +optional
	MaxPercent Percent `json:"maxPercent,omitempty"`

	// targetPercent is the error rate, in percent of requests, above which the canary
	// is degraded. Default: there is no target, only the limit.
	// +optional
	TargetPercent Percent `json:"targetPercent,omitempty"`

	// penalty is how much of the health score an error rate of 100 percent would take
	// off: from 1 to 3. Default: 2, so that an error rate of 10 percent takes off 0.2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 3 : (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) >= 1.0 && double(self) <= 3.0))",message="errorRate.penalty must be from 1 to 3, such as 2: a larger one makes recovery a long climb"
	Penalty Decimal `json:"penalty,omitempty"`

	// maxAboveStablePercent is by how many points the error rate may be above that of
	// stable over the same range: from "0.01" to 100. More is a breach, once it is
	// beyond doubt. A canary within it is not worse than stable. Default: there is no
	// such limit, and any difference that is beyond doubt makes the canary worse.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : (!self.matches('^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$') || double(self) > 0.0)",message="errorRate.maxAboveStablePercent must be above 0, such as \"0.5\""
	MaxAboveStablePercent Percent `json:"maxAboveStablePercent,omitempty"`
}

// Latency limits how slow responses may be: the percentile's response time must
// not exceed max.
//
// +kubebuilder:validation:XValidation:rule="has(self.max)",message="max is required: give the longest acceptable response time at the percentile, such as 500ms"
// +kubebuilder:validation:XValidation:rule="!has(self.target) || !has(self.max) || !self.target.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.max.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.target) <= duration(self.max)",message="latency.target is above latency.max: the target must be the shorter of the two"
type Latency struct {
	// percentile of the response times that is compared with max: 50 up to "99.99". Default: 99.
	// +optional
	// +kubebuilder:default=99
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 50 && self < 100 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || (double(self) >= 50.0 && double(self) < 100.0))",message="latency.percentile must be at least 50 and below 100, such as 99"
	Percentile Percent `json:"percentile,omitempty"`

	// max is the longest acceptable response time at the percentile: from 1ms to 10m.
	// It should be one of the upper bounds of the gateway's histogram buckets;
	// otherwise the next lower bound is used and reported.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="latency.max must be a duration from 1ms to 10m, such as 500ms"
	Max Duration `json:"max,omitempty"`

	// target is the response time at the percentile above which the canary is
	// degraded: from 1ms up to max. It is compared with the smoothed response time.
	// Default: there is no target, and the score counts from max.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('10m')",message="latency.target must be a duration from 1ms to 10m, such as 400ms"
	Target Duration `json:"target,omitempty"`

	// smoothing is the weight of the newest window in the moving average of the
	// response time, which takes in one value per window: from 0.1, which reacts late,
	// to 0.3, which follows single slow requests. Default: 0.2.
	// +optional
	// +kubebuilder:default="0.2"
	// +kubebuilder:validation:XValidation:rule="type(self) == string && (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) >= 0.1 && double(self) <= 0.3))",message="latency.smoothing must be from 0.1 to 0.3, such as \"0.2\""
	Smoothing Decimal `json:"smoothing,omitempty"`

	// penalty is how much of the health score a response time of twice the target
	// takes off: from 0 to 3. Default: 0.5.
	// +optional
	// +kubebuilder:default="0.5"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 3 : (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) >= 0.0 && double(self) <= 3.0))",message="latency.penalty must be from 0 to 3, such as \"0.5\""
	Penalty Decimal `json:"penalty,omitempty"`

	// maxRatioToStable is how many times as long as that of stable, over the same
	// range, the response time at the percentile may be: above 1, up to 100. More is a
	// breach, once it is beyond doubt. Default: there is no such limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 1 && self <= 100 : (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) > 1.0 && double(self) <= 100.0))",message="latency.maxRatioToStable must be above 1 and at most 100, such as \"1.2\""
	MaxRatioToStable Decimal `json:"maxRatioToStable,omitempty"`
}

// Check is a query of your own with limits. It must give one number.
//
// +kubebuilder:validation:XValidation:rule="has(self.query) && size(self.query) > 0",message="query is required: give a PromQL expression that yields one number"
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="a check needs a limit: set min, max or both"
// +kubebuilder:validation:XValidation:rule="!has(self.query) || !self.query.replace('{{namespace}}', 'x').replace('{{service}}', 'x').replace('{{route}}', 'x').replace('{{window}}', 'x').contains('{{')",message="query uses an unknown variable: only {{namespace}}, {{service}}, {{route}} and {{window}} can be used, written exactly so"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || (type(self.min) == string && !self.min.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$')) || (type(self.max) == string && !self.max.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$')) || double(self.min) <= double(self.max)",message="min is above max: no value could pass"
type Check struct {
	// name of the check, as it appears in verdicts: lower-case letters, digits and '-'.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a check must be lower-case letters, digits and '-', such as queue-depth"
	// +kubebuilder:validation:XValidation:rule="!(self in ['error-rate', 'latency', 'requests'])",message="error-rate, latency and requests are the names of the built-in checks: choose another name"
	Name string `json:"name"`

	// query is a PromQL expression that yields one number: a scalar, or a vector
	// with one element. {{namespace}}, {{service}}, {{route}} and {{window}} are
	// filled in.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`

	// min is the lowest acceptable value. Without it a value below 0 is no answer and
	// holds the share, unless max is below 0: a count, a rate or a time cannot be.
	// +optional
	Min *Decimal `json:"min,omitempty"`

	// max is the highest acceptable value.
	// +optional
	Max *Decimal `json:"max,omitempty"`

	// importance is how much the check weighs in the health score: from 0 to 100. The
	// requests' own score weighs 1. A check scores 1 at the best value of the last hour
	// at this share, and 0 at its limit. Default: 0, it has only its limits.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100 : (!self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$') || (double(self) >= 0.0 && double(self) <= 100.0))",message="importance must be from 0 to 100, such as \"0.5\""
	Importance Decimal `json:"importance,omitempty"`
}
