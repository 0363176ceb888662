mod changing;
mod delivering;
mod looking;
mod pausing;
mod rate;
mod surviving;
mod turns;
