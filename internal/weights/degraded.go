package weights

// degradedFloor is the least part of the stage's share that a degraded canary
// keeps: 20 percent. With less its recovery could not be seen.
const degradedFloor = 20 * SharePoint

// ScaleBack returns the share of a degraded canary: the stage's share times its
// health score (in basis points: 9000 is 0.9), but at least a fifth of it. It is
// reached in steps: one lowers present by no more than r.Cap(present).
//
// A difference below r.MinIncrease is the dead band: present is kept, so that a
// score that trembles writes nothing. ScaleBack never raises, and where the plan is
// in whole points so is the result, rounded up.
func ScaleBack(present, stage, score Share, r RampLimits) Share {
	present, stage = present.Clamp(), stage.Clamp()
	// Rounded up, so that the floor holds to the basis point.
	target := (stage*max(score, degradedFloor).Clamp() + ShareAll - 1) / ShareAll
	if present-target < max(r.MinIncrease, 1) {
		return present
	}
	next := max(target, present-r.Cap(present))
	if r.WholePoints {
		next = min((next+SharePoint-1)/SharePoint*SharePoint, present)
	}
	return next
}
