package telemetry

import (
	"strconv"
	"strings"
)

// httpStatus judges an HTTP status: those of 500 and above failed. It takes a class,
// such as 5xx, for one of its statuses.
func httpStatus(code string) (failed, known bool) {
	if len(code) != 3 || code[0] < '1' || code[0] > '5' {
		return false, false
	}
	if rest := strings.ToLower(code[1:]); rest != "xx" && strings.Trim(rest, "0123456789") != "" {
		return false, false
	}
	return code[0] == '5', true
}

// grpcStatuses are the statuses of gRPC, by their number. Those that speak of the
// server, and not of what it was asked, count as failed: as 5xx does with HTTP.
var grpcStatuses = []struct {
	name   string
	failed bool
}{
	{"OK", false}, {"CANCELLED", false}, {"UNKNOWN", true}, {"INVALIDARGUMENT", false},
	{"DEADLINEEXCEEDED", true}, {"NOTFOUND", false}, {"ALREADYEXISTS", false}, {"PERMISSIONDENIED", false},
	{"RESOURCEEXHAUSTED", false}, {"FAILEDPRECONDITION", false}, {"ABORTED", false}, {"OUTOFRANGE", false},
	{"UNIMPLEMENTED", true}, {"INTERNAL", true}, {"UNAVAILABLE", true}, {"DATALOSS", true},
	{"UNAUTHENTICATED", false},
}

// grpcStatus judges a gRPC status, given by its number or by its name in any of the
// spellings DEADLINE_EXCEEDED and DeadlineExceeded.
func grpcStatus(code string) (failed, known bool) {
	if n, err := strconv.ParseUint(code, 10, 8); err == nil {
		if n >= uint64(len(grpcStatuses)) {
			return false, false
		}
		return grpcStatuses[n].failed, true
	}
	name := strings.ToUpper(strings.ReplaceAll(code, "_", ""))
	if name == "CANCELED" {
		return false, true
	}
	for _, s := range grpcStatuses {
		if s.name == name {
			return s.failed, true
		}
	}
	return false, false
}

// traefikStatus judges a request by Traefik's code. For gRPC that is the status which
// the response has in its headers, or which its trailers have if they were announced.
// Traefik reads no others and puts 2 (Unknown) instead, which therefore says nothing:
// most servers announce no trailers, and a server that is down sends none.
func traefikStatus(l map[string]string) (failed, known bool) {
	switch l["protocol"] {
	case "grpc", "grpc-web":
		failed, known = grpcStatus(l["code"])
		return failed, known && l["code"] != "2"
	}
	return httpStatus(l["code"])
}

// istioStatus judges a request by its HTTP status, which is 0 if the client left
// before there was one, and with gRPC by its gRPC status, if that of HTTP is no failure.
func istioStatus(l map[string]string) (failed, known bool) {
	if l["response_code"] == "0" {
		return false, true
	}
	failed, known = httpStatus(l["response_code"])
	if failed || l["request_protocol"] != "grpc" {
		return failed, known
	}
	return grpcStatus(l["grpc_response_status"])
}

// linkerdHTTP judges a response by Linkerd's status, or by the error that took its
// place.
func linkerdHTTP(l map[string]string) (failed, known bool) {
	return linkerdStatus(l, "http_status", httpStatus)
}

// linkerdGRPC is linkerdHTTP for gRPC.
func linkerdGRPC(l map[string]string) (failed, known bool) {
	return linkerdStatus(l, "grpc_status", grpcStatus)
}

func linkerdStatus(l map[string]string, label string, judge func(string) (failed, known bool)) (failed, known bool) {
	switch l["error"] {
	case "":
		return judge(l[label])
	case "CANCEL": // by the client
		return false, true
	}
	return true, true
}

// openTelemetryStatus judges a request by the status of its response, or, if it had
// none, by whether there was an error.
func openTelemetryStatus(l map[string]string) (failed, known bool) {
	if code := l["http_response_status_code"]; code != "" {
		return httpStatus(code)
	}
	return true, l["error_type"] != ""
}

// commonStatus judges a request by the label status, or, without it, by code.
func commonStatus(l map[string]string) (failed, known bool) {
	if l["status"] != "" {
		return httpStatus(l["status"])
	}
	return httpStatus(l["code"])
}
