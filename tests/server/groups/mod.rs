mod changing;
mod delivering;
mod looking;
mod surviving;
mod turns;
